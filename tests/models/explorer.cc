// SPDX-License-Identifier: Apache-2.0
//
// Choices, runs and threads. operations.cc has what threads do.
#include "explorer.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "exploration.h"
#include "inside.h"

namespace ccom::model {
namespace {

constexpr size_t kStackBytes = size_t{128} << 10;
constexpr size_t kArenaBytes = size_t{1} << 20;

Exploration* under_way = nullptr;

}  // namespace

bool Exploration::Inside::is_in_thread = false;

Exploration* Exploration::of_this_thread() { return Inside::is_in_thread ? under_way : nullptr; }

Outcome explore(std::span<std::byte> region, const std::function<Program()>& begin, const Options& options) {
  CCOM_ASSERT(under_way == nullptr);
  Exploration here(region, options);
  under_way = &here;
  Outcome outcome = here.explore(begin);
  under_way = nullptr;
  return outcome;
}

void declare(const volatile void* address, size_t bytes, const std::string& name) {
  under_way->declare(address, bytes, name);
}
void check(bool holds, const char* what) {
  if (!holds) under_way->refuse(what);
}
void forget(uint64_t local) { under_way->forget(local); }
void spin() { under_way->spin(); }

Exploration::Exploration(std::span<std::byte> region, const Options& options)
    : region_(region), options_(options), arena_(kArenaBytes) {}

Outcome Exploration::explore(const std::function<Program()>& begin) {
  bool has_more = true;
  while (has_more && outcome_.wrong.empty() && known_.size() < options_.most_states) {
    run_once(begin);
    ++outcome_.runs;
    has_more = backtrack();
  }
  outcome_.is_complete = outcome_.wrong.empty() && !has_more;
  outcome_.states = known_.size();
  for (const auto& [key, site] : sites_) {
    if (site.is_mutated) outcome_.mutated += site.count;
    outcome_.sites[site.text] += site.count;
  }
  return std::move(outcome_);
}

void Exploration::run_once(const std::function<Program()>& begin) {
  std::ranges::fill(region_, std::byte{0});
  names_.clear();
  memory_.reset(region_.data(), region_.size());
  Program program = begin();
  bodies_ = std::move(program.threads);
  memory_.start(static_cast<int>(bodies_.size()));
  threads_.resize(bodies_.size());
  for (size_t i = 0; i < threads_.size(); ++i) {
    threads_[i].index = static_cast<int>(i);
    start(threads_[i]);
  }
  history_.clear();
  depth_ = 0;
  steps_ = 0;
  allocated_ = 0;
  current_ = -1;
  is_whole_ = false;
  is_in_run_ = true;
  schedule();  // returns when the run has ended
  if (is_whole_) program.finish();
  bodies_.clear();
}

void Exploration::start(Thread& thread) {
  thread.stack.resize(kStackBytes);
  thread.state = State::Ready;
  thread.trace = 0;
  thread.loaded.clear();
  thread.sleeps_on = nullptr;
  thread.last = 0;
  thread.steps = 0;
  ::getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = thread.stack.data();
  thread.context.uc_stack.ss_size = kStackBytes;
  thread.context.uc_link = nullptr;
  ::makecontext(&thread.context, &Exploration::enter, 0);
}

// A thread's first function.
void Exploration::enter() {
  Exploration& here = *under_way;
  here.self().trace = 1;  // having begun is a state of its own
  Inside::is_in_thread = true;
  here.bodies_[static_cast<size_t>(here.current_)]();
  Inside::is_in_thread = false;
  here.self().state = State::Ended;
  here.schedule();
}

// Depth first: the last choice that has another value left.
bool Exploration::backtrack() {
  while (!choices_.empty() && choices_.back().chosen + 1 == choices_.back().count) choices_.pop_back();
  if (choices_.empty()) return false;
  ++choices_.back().chosen;
  return true;
}

int Exploration::choose(size_t count) {
  CCOM_ASSERT(count > 0);
  if (count == 1) return 0;
  if (depth_ == choices_.size()) choices_.push_back({0, static_cast<int>(count)});
  CCOM_ASSERT(choices_[depth_].count == static_cast<int>(count));  // or the code under test is not deterministic
  return choices_[depth_++].chosen;
}

bool Exploration::can_run(const Thread& thread) const {
  if (thread.state == State::Ready) return true;
  return thread.state == State::Spinning &&
         std::ranges::any_of(thread.loaded, [&](int location) { return memory_.has_newer(thread.index, location); });
}

bool Exploration::is_known_state() {
  uint64_t hash = memory_.hash();
  for (const Thread& thread : threads_) {
    const auto sleeps_on = thread.sleeps_on == nullptr ? 0 : memory_.offset_of(thread.sleeps_on);
    hash = mix(hash, mix(thread.trace, static_cast<uint64_t>(thread.state) << 32 | sleeps_on));
  }
  return !known_.insert(hash).second;
}

// Continues some thread, or ends the run. On the stack of the thread that was running, or the explorer's at first.
void Exploration::schedule() {
  ready_.clear();
  for (const Thread& thread : threads_)
    if (can_run(thread)) ready_.push_back(thread.index);
  if (ready_.empty()) {
    is_whole_ = std::ranges::all_of(threads_, [](const Thread& thread) { return thread.state == State::Ended; });
    if (!is_whole_) fail("nobody can go on");
    end_run();
  }
  if (current_ >= 0 && options_.most_thread_steps > 0 && ++self().steps > options_.most_thread_steps) end_run();
  if (++steps_ > options_.most_steps) fail("the run does not end");
  if (ready_.size() > 1 && depth_ == choices_.size() && is_known_state()) end_run();
  const int before = current_;
  current_ = ready_[static_cast<size_t>(choose(ready_.size()))];
  if (current_ == before) return;
  ucontext_t& left = before < 0 ? main_ : threads_[static_cast<size_t>(before)].context;
  ::swapcontext(&left, &self().context);
}

void Exploration::end_run() {
  is_in_run_ = false;
  ::setcontext(&main_);
}

void Exploration::fail(const std::string& what) {
  if (outcome_.wrong.empty()) {
    outcome_.wrong = what;
    for (const Step& step : history_)
      outcome_.trace += "  thread " + std::to_string(step.thread) + ": " + step.site->text + " = " +
                        std::to_string(step.value) + "\n";
  }
  if (is_in_run_) end_run();
}

void Exploration::refuse(const char* what) {
  if (!is_in_run_) return fail(what);
  const Inside inside;
  fail(what);
}

void* Exploration::allocate(size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  CCOM_ASSERT(allocated_ + bytes <= arena_.size());
  return arena_.data() + std::exchange(allocated_, allocated_ + bytes);
}

bool Exploration::has_allocated(const void* memory) {
  if (under_way == nullptr) return false;
  const auto& arena = under_way->arena_;
  return reinterpret_cast<uintptr_t>(memory) - reinterpret_cast<uintptr_t>(arena.data()) < arena.size();
}

}  // namespace ccom::model
