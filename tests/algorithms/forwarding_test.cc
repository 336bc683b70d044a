// SPDX-License-Identifier: Apache-2.0
//
// Messages that other ranks forward, as plans: every message arrives whole, whatever the order of events, with two
// slots at each rank on the way; and plans that are changed are found out.
#include "algorithms/forwarding.h"

#include <gtest/gtest.h>

#include "plan/verify.h"

namespace ccom {
namespace {

using Ways = std::vector<std::vector<Rank>>;

struct Messages {
  std::vector<Plan> plans;
  BlockLists blocks;
  UnitValues inputs, expected;

  Messages(int nranks, const Ways& ways, uint32_t pieces) {
    const auto n = static_cast<size_t>(nranks);
    blocks.gives.resize(n);
    blocks.gets.resize(n);
    inputs.resize(n);
    expected.resize(n);
    for (uint32_t i = 0; i < ways.size(); ++i) {
      const auto from = static_cast<size_t>(ways[i].front()), to = static_cast<size_t>(ways[i].back());
      blocks.gives[from].push_back(i);
      blocks.gets[to].push_back(i);
      inputs[from].emplace_back(leaf(1000 + i, i, ways[i].front()));
      expected[to].push_back(inputs[from].back());
    }
    for (Rank rank = 0; rank < nranks; ++rank) plans.push_back(forwarding_plan(rank, nranks, ways, pieces));
  }
  // Whether each seed's order of events ends, with the right messages.
  bool are_right(std::string& what) const {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const Result<UnitValues> got = run_values(plans, blocks, inputs, seed);
      if (!got) what = got.error().message();
      if (!got || !are_expected(*got)) return false;
    }
    return true;
  }
  bool are_expected(const UnitValues& got) const {
    for (size_t rank = 0; rank < got.size(); ++rank) {
      for (size_t unit = 0; unit < expected[rank].size(); ++unit) {
        if (!got[rank][unit] || got[rank][unit]->sum != expected[rank][unit]->sum) return false;
      }
    }
    return got.size() == expected.size();
  }
};

// Every rank of a ring to the one that is `distance` places on.
Ways round(int nranks, int distance) {
  Ways ways;
  for (Rank rank = 0; rank < nranks; ++rank) {
    std::vector<Rank>& way = ways.emplace_back();
    for (int hop = 0; hop <= distance; ++hop) way.push_back((rank + hop) % nranks);
  }
  return ways;
}

TEST(ForwardingPlan, DeliversEveryMessageOfARing) {
  for (const int nranks : {3, 5, 8}) {
    for (int distance = 1; distance < nranks; ++distance) {
      for (const uint32_t pieces : {1U, 2U, 7U}) {
        std::string what;
        const Messages messages(nranks, round(nranks, distance), pieces);
        EXPECT_TRUE(messages.are_right(what)) << nranks << " " << distance << " " << pieces << ": " << what;
        for (const Plan& plan : messages.plans) EXPECT_LE(plan.scratch_slots, 2U * static_cast<uint32_t>(distance - 1));
      }
    }
  }
}

TEST(ForwardingPlan, MixesWaysOfAnyLength) {
  std::string what;
  const Messages messages(6, {{0, 1, 2, 5}, {5, 2, 1, 0}, {3, 4}, {0, 1}, {1, 2, 5, 4}, {1, 0, 3}}, 5);
  EXPECT_TRUE(messages.are_right(what)) << what;
}

// Every single step left out or with another slot, piece or peer: nothing of that passes.
TEST(ForwardingPlan, ThatIsChangedIsFoundOut) {
  const Messages messages(5, round(5, 3), 3);
  std::string what;
  ASSERT_TRUE(messages.are_right(what)) << what;
  int mutants = 0;
  for (size_t rank = 0; rank < messages.plans.size(); ++rank) {
    for (size_t step = 0; step < messages.plans[rank].steps.size(); ++step) {
      for (int change = 0; change < 3; ++change) {
        Messages mutant = messages;
        Plan& plan = mutant.plans[rank];
        Step& changed = plan.steps[step];
        if (change == 0) plan.steps.erase(plan.steps.begin() + static_cast<ptrdiff_t>(step));
        if (change == 1)
          changed.peer = (changed.peer + 1) % 5 == plan.rank ? (changed.peer + 2) % 5 : (changed.peer + 1) % 5;
        if (change == 2) {
          uint32_t& place = changed.kind == StepKind::Send ? changed.source : changed.target;
          const Buffer buffer = changed.kind == StepKind::Send ? changed.source_buffer : changed.target_buffer;
          place = buffer == Buffer::Scratch ? (place + 2) % plan.scratch_slots : (place + 1) % 3;
        }
        EXPECT_FALSE(mutant.are_right(what)) << "rank " << rank << " step " << step << " change " << change;
        ++mutants;
      }
    }
  }
  EXPECT_GT(mutants, 200);
}

}  // namespace
}  // namespace ccom
