// SPDX-License-Identifier: Apache-2.0
#include "plan/verify.h"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "plan/checks.h"
#include "plan/executor.h"
#include "plan/fingerprint.h"
#include "plan/print.h"

namespace ccom {
namespace {

// What a block holds, symbolically.
struct Value {
  uint64_t sum = 0;         // fingerprint of the contributions
  uint64_t expression = 0;  // hash of the tree of combinations
  int roundings = 0;
  bool completed = false;
  bool defined = false;
};

Value combine(const Value& a, const Value& b) {
  Value result;
  result.sum = add_mod(a.sum, b.sum);
  // Symmetric in the operands: a + b and b + a have the same bits.
  result.expression = mix(std::min(a.expression, b.expression)) ^ (mix(std::max(a.expression, b.expression)) << 1 | 1);
  result.roundings = std::max(a.roundings, b.roundings);
  result.completed = a.completed || b.completed;  // an error if it happens; checked where it is combined
  result.defined = a.defined && b.defined;
  return result;
}

// ---- Rules 2, 3, 5, 6, 7: a symbolic run --------------------------------------------------------------------------

// One rank in the symbolic world.
struct SymbolicRank {
  explicit SymbolicRank(const Plan& p)
      : plan(&p), dependencies(derive_dependencies(p)), executor(dependencies), cells(p), memory(cells.count()) {}
  const Plan* plan;
  Dependencies dependencies;
  Executor executor;
  Cells cells;
  std::vector<Value> memory;
  std::vector<uint32_t> ready;

  Value& at(Buffer buffer, uint32_t index) { return memory[cells.of(buffer, index)]; }
};

class SymbolicRun {
 public:
  SymbolicRun(std::span<const Plan> plans, uint64_t seed) : plans_(plans), random_(seed), seed_(mix(seed)) {
    ranks_.reserve(plans.size());
    for (const Plan& plan : plans) ranks_.emplace_back(plan);
  }

  Result<VerifyReport> run() {
    for (SymbolicRank& rank : ranks_) CCOM_TRY(check_races(*rank.plan, rank.dependencies));
    for (SymbolicRank& rank : ranks_) {
      fill_input(rank);
      rank.executor.start(rank.ready);
      CCOM_TRY(issue(rank));
    }
    while (!events_.empty()) CCOM_TRY(complete_one());
    for (const SymbolicRank& rank : ranks_) {
      if (!rank.executor.finished()) return deadlock(rank);
    }
    CCOM_TRY(check_results());
    return report_;
  }

 private:
  using Pipe = std::tuple<Rank, Rank, uint8_t>;  // from, to, channel
  struct Event {                                 // something that may complete now: a local step, or a matched transfer
    Rank rank;
    uint32_t step;
    Rank receiver = -1;
    uint32_t receive_step = 0;
    std::vector<Value> in_flight{};  // sender's values, if they were read early
    std::vector<Value> own{};        // a receive-reduce's local operand
  };

  uint64_t contribution(Rank rank, uint32_t block) const {
    return mix(seed_ ^ mix(static_cast<uint64_t>(rank) << 32 | block)) % kPrime;
  }

  void fill_input(SymbolicRank& rank) {
    for (uint32_t b = 0; b < rank.plan->input_blocks(); ++b) {
      const uint64_t sum = contribution(rank.plan->rank, b);
      rank.at(Buffer::Input, b) = Value{sum, mix(sum ^ 0x5bd1e995), 0, false, true};
    }
  }

  std::vector<Value> read(SymbolicRank& rank, Buffer buffer, uint32_t first, uint32_t count) {
    std::vector<Value> values(count);
    for (uint32_t i = 0; i < count; ++i) values[i] = rank.at(buffer, first + i);
    return values;
  }

  // Starts what is ready: transfers wait for their partner, local steps become events.
  Status issue(SymbolicRank& rank) {
    const Rank self = rank.plan->rank;
    for (const uint32_t s : std::exchange(rank.ready, {})) {
      const Step& step = rank.plan->steps[s];
      if (!step.is_transfer()) {
        events_.push_back({self, s});
        continue;
      }
      const bool receive = step.is_receive();
      const Pipe pipe = receive ? Pipe{step.peer, self, step.channel} : Pipe{self, step.peer, step.channel};
      auto& waiting = (receive ? receives_ : sends_)[pipe];
      auto& partners = (receive ? sends_ : receives_)[pipe];
      Pending pending{s, {}};
      if (step.kind == StepKind::ReceiveReduce) pending.own = read(rank, step.source_buffer, step.source, step.count);
      if (receive) {  // the target may be overwritten at any time from now on
        for (uint32_t i = 0; i < step.count; ++i) rank.at(step.target_buffer, step.target + i) = Value{};
      }
      if (partners.empty()) {
        waiting.push_back(std::move(pending));
        continue;
      }
      Pending partner = std::move(partners.front());
      partners.erase(partners.begin());
      CCOM_TRY(receive ? match(std::get<0>(pipe), partner, self, pending)
                       : match(self, pending, std::get<1>(pipe), partner));
    }
    return {};
  }

  struct Pending {
    uint32_t step;
    std::vector<Value> own;
  };

  Status match(Rank sender, const Pending& send, Rank receiver, const Pending& receive) {
    const Step& from = plans_[sender].steps[send.step];
    const Step& to = plans_[receiver].steps[receive.step];
    const uint32_t unit = plans_[sender].blocks_per_unit;
    if (from.count != to.count || from.block % unit != to.block % unit) {
      return defect(plans_[receiver], receive.step,
                    ("the send that it meets has another length: " + to_text(from)).c_str());
    }
    Event event{sender, send.step, receiver, receive.step, {}, receive.own};
    if (random_() % 2 == 0) event.in_flight = read(ranks_[sender], from.source_buffer, from.source, from.count);
    events_.push_back(std::move(event));
    return {};
  }

  Status complete_one() {
    const size_t pick = random_() % events_.size();
    Event event = std::move(events_[pick]);
    events_[pick] = std::move(events_.back());
    events_.pop_back();
    SymbolicRank& rank = ranks_[event.rank];
    if (event.receiver < 0) {
      CCOM_TRY(run_local(rank, event.step));
    } else {
      SymbolicRank& receiver = ranks_[event.receiver];
      CCOM_TRY(run_transfer(rank, receiver, event));
      receiver.executor.done(event.receive_step, receiver.ready);
      CCOM_TRY(issue(receiver));
    }
    rank.executor.done(event.step, rank.ready);
    return issue(rank);
  }

  Status run_local(SymbolicRank& rank, uint32_t s) {
    const Step& step = rank.plan->steps[s];
    for (uint32_t i = 0; i < step.count; ++i) {
      Value value = rank.at(step.source_buffer, step.source + i);
      if (step.kind == StepKind::Reduce) {
        for (uint32_t k = 1; k < step.inputs; ++k) {
          CCOM_TRY(check_operand(rank, s, value));
          value = combine(value, rank.at(step.source_buffer, step.source + k * step.count + i));
        }
        ++value.roundings;
      }
      CCOM_TRY(store(rank, s, i, value));
    }
    return {};
  }

  Status run_transfer(SymbolicRank& sender, SymbolicRank& receiver, Event& event) {
    const Step& from = sender.plan->steps[event.step];
    const Step& to = receiver.plan->steps[event.receive_step];
    if (event.in_flight.empty()) event.in_flight = read(sender, from.source_buffer, from.source, from.count);
    for (uint32_t i = 0; i < to.count; ++i) {
      Value value = event.in_flight[i];
      if (to.kind == StepKind::ReceiveReduce) {
        CCOM_TRY(check_operand(receiver, event.receive_step, value));
        value = combine(event.own[i], value);
        ++value.roundings;
      }
      CCOM_TRY(store(receiver, event.receive_step, i, value));
    }
    return {};
  }

  Status check_operand(const SymbolicRank& rank, uint32_t s, const Value& value) {
    if (value.completed) return defect(*rank.plan, s, "it adds to a result that is complete already");
    return {};
  }

  Status store(SymbolicRank& rank, uint32_t s, uint32_t i, Value value) {
    const Step& step = rank.plan->steps[s];
    if (!value.defined) return defect(*rank.plan, s, "it uses a block that holds nothing yet");
    if (step.completes) {
      if (value.completed) return defect(*rank.plan, s, "the result is complete already");
      value.completed = true;
    }
    rank.at(step.target_buffer, step.target + i) = value;
    return {};
  }

  Status deadlock(const SymbolicRank& rank) const {
    for (const auto* waiting : {&sends_, &receives_}) {
      for (const auto& [pipe, steps] : *waiting) {
        const Rank who = waiting == &sends_ ? std::get<0>(pipe) : std::get<1>(pipe);
        if (!steps.empty()) return defect(plans_[who], steps.front().step, "it waits for ever for its partner");
      }
    }
    return defect(*rank.plan, rank.plan->steps.size(), "it never finishes");
  }

  // ---- What the collective must have produced ----

  uint64_t sum_over_ranks(uint32_t block) const {
    uint64_t sum = 0;
    for (Rank r = 0; r < static_cast<Rank>(plans_.size()); ++r) sum = add_mod(sum, contribution(r, block));
    return sum;
  }

  uint64_t expected(const Plan& plan, uint32_t block) const {
    const uint32_t unit = plan.blocks_per_unit;
    const auto self = static_cast<uint32_t>(plan.rank);
    switch (plan.collective) {
      case Collective::AllReduce:
      case Collective::Reduce: return sum_over_ranks(block);
      case Collective::ReduceScatter: return sum_over_ranks(self * unit + block);
      case Collective::Barrier:
      case Collective::AllGather:
      case Collective::Gather: return contribution(static_cast<Rank>(block / unit), block % unit);
      case Collective::Broadcast: return contribution(plan.root, block);
      case Collective::Scatter: return contribution(plan.root, self * unit + block);
      case Collective::AllToAll: return contribution(static_cast<Rank>(block / unit), self * unit + block % unit);
      case Collective::SendReceive: break;
    }
    return 0;
  }

  Status check_results() {
    std::map<uint32_t, uint64_t> expression_of;
    for (SymbolicRank& rank : ranks_) {
      const Plan& plan = *rank.plan;
      const bool reduces = plan.collective == Collective::AllReduce || plan.collective == Collective::Reduce ||
                           plan.collective == Collective::ReduceScatter;
      for (uint32_t b = 0; b < plan.output_blocks(); ++b) {
        const Value& value = rank.at(Buffer::Output, b);
        const std::string where = "output block " + std::to_string(b) + " ";
        const auto wrong = [&plan, &where](const char* what) {
          return defect(plan, plan.steps.size(), (where + what).c_str());
        };
        if (!value.defined) return wrong("is never written");
        if (value.sum != expected(plan, b)) return wrong("lacks a contribution, or holds one twice or a wrong one");
        if (reduces && !value.completed) return wrong("passes no step that completes it");
        if (!reduces && value.completed) return wrong("is marked complete although nothing is reduced");
        if (plan.collective == Collective::AllReduce &&
            expression_of.try_emplace(b, value.expression).first->second != value.expression) {
          return wrong("is another expression than on rank 0: bits may differ");
        }
        report_.max_roundings = std::max(report_.max_roundings, value.roundings);
      }
      size_t sent = 0;
      for (const Step& step : plan.steps) sent += step.kind == StepKind::Send ? step.count : 0;
      report_.max_sent_blocks = std::max(report_.max_sent_blocks, sent);
    }
    return {};
  }

  std::span<const Plan> plans_;
  std::mt19937_64 random_;
  uint64_t seed_;
  std::vector<SymbolicRank> ranks_;
  std::map<Pipe, std::vector<Pending>> sends_, receives_;
  std::vector<Event> events_;
  VerifyReport report_;
};

}  // namespace

Result<VerifyReport> verify(std::span<const Plan> plans, uint64_t seed) {
  if (plans.empty()) return error(Code::InvalidArgument, "verify: no plans");
  CCOM_TRY(check_shape(plans));
  return SymbolicRun(plans, seed).run();
}

}  // namespace ccom
