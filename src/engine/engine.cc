// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/assert.h"
#include "engine/combining.h"
#include "liveness/call_mismatch.h"
#include "liveness/lost_peer.h"

namespace ccom {
namespace {

constexpr uint32_t kStepBits = 24;  // of a token; the rest is the operation's index

}  // namespace

// One operation under way: the executor's world.
class Engine::Run {
 public:
  explicit Run(Engine& engine) : engine_(engine) {}

  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() {
    if (scratch_ != nullptr) ::munmap(scratch_, scratch_bytes_);
  }

  Status reserve_scratch(size_t bytes) {
    if (bytes <= scratch_bytes_) return {};
    if (scratch_ != nullptr) ::munmap(scratch_, scratch_bytes_);
    scratch_ = nullptr;
    scratch_bytes_ = 0;
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return system_error(errno, "map %zu bytes of scratch", bytes);
    scratch_ = static_cast<std::byte*>(memory);
    scratch_bytes_ = bytes;
    return {};
  }
  size_t scratch_bytes() const { return scratch_bytes_; }

  Status start(const Operation& operation, uint32_t index) {
    CCOM_ASSERT(finished() && operation.plan->steps.size() < size_t{1} << kStepBits);
    CCOM_TRY(reserve_scratch(operation.plan->scratch_bytes));
    operation_ = operation;
    index_ = index;
    if (compiled_ != operation.plan->compiled) {
      compiled_ = operation.plan->compiled;
      executor_.emplace(compiled_->dependencies);
    }
    sinks_.resize(std::max(sinks_.size(), operation.plan->steps.size()));
    posted_.assign(operation.plan->steps.size(), false);
    ready_.clear();
    executor_->start(ready_);
    return start_ready();
  }

  Status complete(uint32_t step) {
    --engine_.outstanding_[operation_.plan->steps[step].transport];
    posted_[step] = false;
    CCOM_TRY(operator_status());
    executor_->done(step, ready_);
    return start_ready();
  }

  bool finished() const { return !executor_ || executor_->finished(); }

  bool all_take_part() const { return compiled_->plan.collective != Collective::SendReceive; }

  // A peer that it still waits for, one that is to send if there is one; -1: none.
  Rank first_late() const {
    Rank found = -1;
    for (uint32_t s = 0; s < posted_.size(); ++s) {
      if (!posted_[s]) continue;
      const BoundStep& step = operation_.plan->steps[s];
      if (step.kind != StepKind::Send) return step.peer;
      if (found < 0) found = step.peer;
    }
    return found;
  }
  // Peers that this operation still waits for.
  void note_late(std::vector<int>& peers) const {
    for (uint32_t s = 0; s < posted_.size(); ++s) {
      if (posted_[s]) peers.push_back(operation_.plan->steps[s].peer);
    }
  }

 private:
  // Combines arriving bytes with this rank's part.
  class ReduceSink final : public Sink {
   public:
    void consume(size_t offset_bytes, ConstBytes bytes) override {
      const std::byte* inputs[] = {run->source(*step) + offset_bytes, bytes.data()};
      if (step->peer_first) std::swap(inputs[0], inputs[1]);
      const size_t element_bytes = size_of(run->operation_.plan->type);
      combine(run->operation_, *step, inputs, run->target(*step) + offset_bytes,
              {offset_bytes / element_bytes, bytes.size() / element_bytes});
    }
    const Run* run = nullptr;
    const BoundStep* step = nullptr;
  };

  // Local steps are done at once and make others ready, which are appended; so this is a plain loop.
  Status start_ready() {
    for (size_t i = 0; i < ready_.size(); ++i) {
      const uint32_t s = ready_[i];
      const BoundStep& step = operation_.plan->steps[s];
      if (step.channel != nullptr) {
        CCOM_TRY(post(s, step));
        continue;
      }
      run_local(step);
      CCOM_TRY(operator_status());
      executor_->done(s, ready_);
    }
    ready_.clear();
    return {};
  }

  Status post(uint32_t s, const BoundStep& step) {
    const Token token = static_cast<Token>(index_) << kStepBits | s;
    ++engine_.outstanding_[step.transport];
    posted_[s] = true;
    switch (step.kind) {
      case StepKind::Send:
        engine_.bytes_sent_to_[static_cast<size_t>(step.peer)] += step.size_bytes;
        return step.channel->post_send({operation_.envelope, {source(step), step.size_bytes}, token});
      case StepKind::Receive:
        return step.channel->post_receive({operation_.envelope, step.size_bytes, target(step), nullptr, token});
      default: {
        ReduceSink& sink = sinks_[s];
        sink.run = this;
        sink.step = &step;
        return step.channel->post_receive({operation_.envelope, step.size_bytes, nullptr, &sink, token});
      }
    }
  }

  void run_local(const BoundStep& step) {
    switch (step.kind) {
      case StepKind::Copy: return copy(step);
      case StepKind::Permute: return permute(step);
      default: return reduce_scratch(step);
    }
  }

  void permute(const BoundStep& step) {
    for (const BoundMove& move : std::span(operation_.plan->moves).subspan(step.first_move, step.moves)) {
      const std::byte* const from = begin_of(move.source_memory) + move.source;
      std::memcpy(begin_of(move.target_memory) + move.target, from, move.size_bytes);
    }
  }

  void copy(const BoundStep& step) {
    const std::byte* from = source(step);
    std::byte* to = target(step);
    if (step.completes) {  // a sum of one contribution: divided, or normalised to 0 and 1
      reduce(reduction_of(operation_, step), {&from, 1}, to, step.elements);
    } else if (from != to && step.size_bytes > 0) {
      std::memcpy(to, from, step.size_bytes);
    }
  }

  void reduce_scratch(const BoundStep& step) {
    inputs_.clear();
    for (size_t i = 0; i < step.inputs; ++i) inputs_.push_back(source(step) + i * step.stride);
    combine(operation_, step, inputs_, target(step), {0, step.elements});
  }

  // Before anything is sent that a user's operator has failed to make.
  Status operator_status() const {
    return operation_.user != nullptr && operation_.user->has_failed() ? operation_.user->failure() : Status();
  }

  const std::byte* source(const BoundStep& step) const { return begin_of(step.source_memory) + step.source; }
  std::byte* target(const BoundStep& step) const { return begin_of(step.target_memory) + step.target; }
  std::byte* begin_of(Memory memory) const {
    switch (memory) {
      // At most the target of a copy onto itself.
      case Memory::Input: return const_cast<std::byte*>(operation_.input);
      case Memory::Output: return operation_.output;
      case Memory::Bank: return operation_.bank;
      default: return scratch_;
    }
  }

  Engine& engine_;
  Operation operation_;
  uint32_t index_ = 0;
  std::shared_ptr<const CompiledPlan> compiled_;  // the executor reads its dependencies
  std::optional<Executor> executor_;
  std::vector<uint32_t> ready_;
  std::vector<ReduceSink> sinks_;  // by step
  std::vector<const std::byte*> inputs_;
  std::vector<bool> posted_;
  std::byte* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
};

Engine::Engine(Rank rank, int nranks, Monitor& monitor, std::vector<Transport*> transports, const CallNames& names,
               WaitPolicy policy)
    : rank_(rank),
      monitor_(monitor),
      transports_(std::move(transports)),
      names_(names),
      policy_(policy),
      outstanding_(transports_.size()),
      bytes_sent_to_(static_cast<size_t>(nranks)) {}

Engine::~Engine() = default;

size_t Engine::memory_bytes() const {
  size_t bytes = 0;
  for (const auto& run : runs_) bytes += run->scratch_bytes();
  return bytes;
}

Status Engine::run(std::span<const Operation> operations, Deadline deadline) {
  if (monitor_.failed()) return give_up(monitor_.status());
  for (size_t i = 0; i < operations.size(); ++i) CCOM_TRY(begin(i, operations[i]));
  Backoff backoff(policy_);
  for (size_t i = 0; i < operations.size(); ++i) CCOM_TRY(finish_run(i, deadline, backoff));
  return {};
}

Status Engine::start(size_t slot, const Operation& operation) {
  CCOM_ASSERT(slot < kMostStarted);
  if (monitor_.failed()) return give_up(monitor_.status());
  return begin(slot, operation);
}

Status Engine::finish(size_t slot, Deadline deadline) {
  CCOM_ASSERT(slot < runs_.size());
  Backoff backoff(policy_);
  return finish_run(slot, deadline, backoff);
}

Status Engine::begin(size_t slot, const Operation& operation) {
  while (runs_.size() <= slot) runs_.push_back(std::make_unique<Run>(*this));
  const Status started = runs_[slot]->start(operation, static_cast<uint32_t>(slot));
  return started.is_ok() ? started : give_up(started);
}

Status Engine::finish_run(size_t slot, Deadline deadline, Backoff& backoff) {
  constexpr uint32_t kRoundsPerClock = 64;
  uint32_t rounds = 0;
  LongWait long_wait(monitor_, rank_);
  while (!runs_[slot]->finished()) {
    if (Status status = collect_events(); !status.is_ok()) return give_up(status);
    if (!events_.completed.empty()) {
      for (const Token token : events_.completed) {
        const Status status = runs_[token >> kStepBits]->complete(token & ((Token{1} << kStepBits) - 1));
        if (!status.is_ok()) return give_up(status);
      }
      events_.completed.clear();
      backoff.reset();
      long_wait.end();
      // Progress is no reason to stay beyond an abort or the deadline.
      if (monitor_.failed()) return give_up(monitor_.status());
      if (++rounds % kRoundsPerClock == 0 && deadline.passed()) return give_up(late());
      continue;
    }
    if (Status status = wait_for_events(backoff, long_wait, deadline); !status.is_ok()) return give_up(status);
  }
  return {};
}

// Lets every transport with work move.
Status Engine::collect_events() {
  for (size_t t = 0; t < transports_.size(); ++t) {
    if (outstanding_[t] == 0) continue;
    CCOM_TRY(transports_[t]->progress(events_));
    if (!events_.mismatch) continue;
    const Mismatch& found = *events_.mismatch;
    return find_mismatch(
        monitor_, {rank_, names_.describe_call(found.expected), found.expected.words[1]},
        {found.peer, names_.describe_call(found.received), found.received.words[1]},
        found.expected == found.received ? " (equal calls, but messages of another size: a bug in ccom)" : "");
  }
  return {};
}

Status Engine::wait_for_events(Backoff& backoff, LongWait& long_wait, Deadline deadline) {
  if (monitor_.failed()) return monitor_.status();
  const Backoff::Next next = backoff.step();
  if (backoff.has_lasted() && !long_wait.is_noted()) long_wait.note(first_awaited(), backoff.since());
  if (next == Backoff::Next::Poll) return {};
  if (backoff.now() >= deadline.when()) return late();
  if (long_wait.is_due(backoff.now())) {
    const Awaited awaited = awaited_ranks();
    long_wait.react(awaited.ranks, awaited.is_collective);
  }
  const auto busy = static_cast<long>(std::ranges::count_if(outstanding_, [](uint32_t n) { return n > 0; }));
  // With several transports each gets a share of a slice; the short ones keep the others' latency small.
  const auto slice = busy > 1 ? std::min(backoff.slice(), std::chrono::nanoseconds(1000000)) / busy : backoff.slice();
  for (size_t t = 0; t < transports_.size(); ++t) {
    if (outstanding_[t] > 0) transports_[t]->wait(std::min(slice, deadline.left()));
  }
  return monitor_.check();
}

Rank Engine::first_awaited() const {
  for (const auto& run : runs_) {
    const Rank peer = run->finished() ? -1 : run->first_late();
    if (peer >= 0) return peer;
  }
  return -1;
}

Engine::Awaited Engine::awaited_ranks() const {
  Awaited awaited;
  for (const auto& run : runs_) {
    if (run->finished()) continue;
    run->note_late(awaited.ranks);
    awaited.is_collective &= run->all_take_part();
  }
  std::ranges::sort(awaited.ranks);
  awaited.ranks.erase(std::unique(awaited.ranks.begin(), awaited.ranks.end()), awaited.ranks.end());
  return awaited;
}

Status Engine::late() {
  Awaited awaited = awaited_ranks();
  return timeout_status(monitor_, rank_, std::move(awaited.ranks), awaited.is_collective);
}

// Reports the cause, stops everything, and returns the error that all ranks agree on. Memory may have run out for good:
// the other ranks hear of it all the same, and no transport goes on with buffers that the caller gets back.
Status Engine::give_up(const Status& cause) noexcept {
  Status status = out_of_memory();
  try {
    status = monitor_.report(explain_loss(monitor_, cause));
  } catch (const std::bad_alloc&) {
    try {
      status = monitor_.report(cause);
    } catch (const std::bad_alloc&) {
    }
  }
  if (!stopped_) {
    for (Transport* transport : transports_) transport->stop();
    stopped_ = true;
  }
  return status;
}

}  // namespace ccom
