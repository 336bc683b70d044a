// SPDX-License-Identifier: Apache-2.0
#include "tests/plan/mutants.h"

#include <optional>

#include "plan/print.h"

namespace ccom {
namespace {

using Steps = std::vector<Step>;

Steps::iterator at(Steps& steps, size_t s) { return steps.begin() + static_cast<std::ptrdiff_t>(s); }

// The step that meets step s of `rank`.
std::optional<size_t> partner_of(const std::vector<Plan>& plans, Rank rank, size_t s) {
  const Steps& steps = plans[static_cast<size_t>(rank)].steps;
  const Step& step = steps[s];
  if (!step.is_transfer()) return std::nullopt;
  size_t ahead = 0;
  for (size_t i = 0; i < s; ++i) {
    ahead += steps[i].is_transfer() && steps[i].peer == step.peer && steps[i].channel == step.channel &&
             steps[i].is_receive() == step.is_receive();
  }
  const Steps& others = plans[static_cast<size_t>(step.peer)].steps;
  for (size_t i = 0; i < others.size(); ++i) {
    if (others[i].is_transfer() && others[i].peer == rank && others[i].channel == step.channel &&
        others[i].is_receive() != step.is_receive() && ahead-- == 0) {
      return i;
    }
  }
  return std::nullopt;
}

class Mutator {
 public:
  Mutator(const std::vector<Plan>& plans, Rank rank, std::mt19937_64& random,
          const std::function<void(const Mutation&, const std::vector<Plan>&)>& fn)
      : good_(plans), plans_(plans), rank_(rank), random_(random), fn_(fn) {}

  void mutate(size_t s) {
    order(s);
    fields(s);
    kinds(s);
    messages(s);
    if (plan().steps[s].kind == StepKind::Permute) permutations(s);
  }

 private:
  Plan& plan() { return plans_[static_cast<size_t>(rank_)]; }

  template <typename Change>
  void mutant(const char* operation, size_t s, Change change) {
    change(plan().steps);
    fn_({operation, "rank " + std::to_string(rank_) + ", step " + std::to_string(s) + ": " +
                        to_text(good_[static_cast<size_t>(rank_)].steps[s])},
        plans_);
    plans_ = good_;
  }

  // One field of one step, unless it has that value already.
  template <typename Field>
  void change(const char* operation, size_t s, Field Step::*field, int64_t value) {
    if (value < 0 || plan().steps[s].*field == static_cast<Field>(value)) return;
    mutant(operation, s, [&](Steps& steps) { steps[s].*field = static_cast<Field>(value); });
  }

  void order(size_t s) {
    const size_t count = plan().steps.size();
    mutant("drop", s, [&](Steps& steps) { steps.erase(at(steps, s)); });
    mutant("duplicate", s, [&](Steps& steps) { steps.insert(at(steps, s), Step(steps[s])); });
    if (s + 1 < count) mutant("swap", s, [&](Steps& steps) { std::swap(steps[s], steps[s + 1]); });
    if (s + 2 < count) {
      const size_t other = s + 2 + random_() % (count - s - 2);
      mutant("swap", s, [&](Steps& steps) { std::swap(steps[s], steps[other]); });
    }
  }

  void fields(size_t s) {
    const Step step = plan().steps[s];
    for (const int64_t by : {-1, 1}) {
      if (step.reads_source()) change("chunk", s, &Step::source, step.source + by);
      if (step.writes_target()) change("chunk", s, &Step::target, step.target + by);
      change("chunk", s, &Step::block, step.block + by);
      change("chunk", s, &Step::count, step.count + by);
      mutant("chunk", s, [&](Steps& steps) {  // a whole other block
        steps[s].source += static_cast<uint32_t>(step.reads_source() ? by : 0);
        steps[s].target += static_cast<uint32_t>(step.writes_target() ? by : 0);
        steps[s].block += static_cast<uint32_t>(by);
      });
      if (step.kind == StepKind::Reduce || step.kind == StepKind::Permute)
        change("chunk", s, &Step::inputs, step.inputs + by);
    }
    change("completes", s, &Step::completes, !step.completes);
    for (const Buffer buffer : {Buffer::Input, Buffer::Output, Buffer::Scratch}) {
      if (step.reads_source()) change("buffer", s, &Step::source_buffer, static_cast<int64_t>(buffer));
      if (step.writes_target()) change("buffer", s, &Step::target_buffer, static_cast<int64_t>(buffer));
    }
    if (!step.is_transfer()) return;
    change("channel", s, &Step::channel, step.channel + 1);
    for (int64_t peer = 0; peer <= plan().nranks; ++peer) change("re-aim", s, &Step::peer, peer);
  }

  void kinds(size_t s) {
    const Step step = plan().steps[s];
    for (const StepKind kind : {StepKind::Send, StepKind::Receive, StepKind::ReceiveReduce, StepKind::Copy,
                                StepKind::Reduce, StepKind::Permute}) {
      if (kind == step.kind) continue;
      mutant("kind", s, [&](Steps& steps) {
        Step& changed = steps[s];
        changed.kind = kind;
        if (!step.is_transfer()) changed.peer = (rank_ + 1) % plan().nranks;
        if (kind == StepKind::Reduce) changed.inputs = 2;
        if (kind == StepKind::Permute) changed.inputs = 0;
        if (kind == StepKind::Send || kind == StepKind::Receive) changed.completes = false;
      });
    }
  }

  // Both ends alike, so that they still meet.
  void messages(size_t s) {
    if (!plan().steps[s].is_transfer() || plan().steps[s].is_receive()) return;
    const std::optional<size_t> partner = partner_of(good_, rank_, s);
    if (!partner) return;
    const auto both = [&](const char* operation, auto fn) {
      Steps& others = plans_[static_cast<size_t>(plan().steps[s].peer)].steps;
      mutant(operation, s, [&](Steps& steps) {
        fn(steps, s);
        fn(others, *partner);
      });
    };
    both("drop message", [](Steps& steps, size_t i) { steps.erase(at(steps, i)); });
    both("duplicate message", [](Steps& steps, size_t i) { steps.insert(at(steps, i), Step(steps[i])); });
    both("channel of message", [](Steps& steps, size_t i) { ++steps[i].channel; });
    both("length of message", [](Steps& steps, size_t i) { --steps[i].count; });
    both("block of message", [](Steps& steps, size_t i) {
      ++steps[i].block;
      if (steps[i].reads_source()) ++steps[i].source;
      if (steps[i].writes_target()) ++steps[i].target;
    });
  }

  // Two entries exchanged, and one that is there twice, in what the step goes by; of what its plan calls a position.
  void permutations(size_t s) {
    const uint16_t index = plan().steps[s].inputs;
    const auto changed = [&](const char* operation, const NumberList& list, auto put, auto fn) {
      std::vector<uint32_t> numbers;
      for (uint32_t i = 0; i < list.size(); ++i) numbers.push_back(list[i]);
      const size_t a = random_() % numbers.size(), b = random_() % numbers.size();
      if (a == b) return;
      fn(numbers[a], numbers[b]);
      mutant(operation, s, [&](Steps&) { put(NumberList(numbers)); });
    };
    const auto permutation = [&](const NumberList& list) { plan().permutations[index] = list; };
    const auto twice = [](uint32_t& a, uint32_t b) { a = b; };
    const auto swap = [](uint32_t& a, uint32_t& b) { std::swap(a, b); };
    changed("permutation", NumberList(plan().permutations[index]), permutation, swap);
    changed("permutation", NumberList(plan().permutations[index]), permutation, twice);
    const auto order = [&](const NumberList& list) { plan().order = list; };
    const auto all_orders = [&](const NumberList& list) {
      for (Plan& any : plans_) any.order = list;
    };
    changed("order", NumberList(plan().order), order, swap);
    changed("order", NumberList(plan().order), order, twice);
    changed("order of all", NumberList(plan().order), all_orders, swap);
    for (size_t i = 0; i < plan().stretches.size(); ++i) {
      mutant("stretch", s, [&](Steps&) { ++plan().stretches[i].position; });
      mutant("stretch", s, [&](Steps&) { ++plan().stretches[i].slot; });
    }
  }

  const std::vector<Plan>& good_;
  std::vector<Plan> plans_;
  Rank rank_;
  std::mt19937_64& random_;
  const std::function<void(const Mutation&, const std::vector<Plan>&)>& fn_;
};

}  // namespace

void for_each_mutant(const std::vector<Plan>& plans, Rank rank, std::mt19937_64& random,
                     const std::function<void(const Mutation&, const std::vector<Plan>&)>& fn) {
  Mutator mutator(plans, rank, random, fn);
  for (size_t s = 0; s < plans[static_cast<size_t>(rank)].steps.size(); ++s) mutator.mutate(s);
}

}  // namespace ccom
