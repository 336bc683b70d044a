// SPDX-License-Identifier: Apache-2.0
//
// Every algorithm, proved by the verifier for n = 1..33, odd shapes, every root, in place and out of place, from
// several seeds of event order; and the accuracy and traffic that its file promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "algorithms/cost.h"
#include "tests/algorithms/torus_shapes.h"
#include "tests/plan/families.h"

namespace ccom {
namespace {

// hosts.size() hosts with that many ranks each, numbered host after host.
Staged hierarchical(const std::vector<int>& hosts, Pattern across, bool across_is_core) {
  Staged shape;
  const int owners = *std::ranges::min_element(hosts);
  Level inside{.pattern = Pattern::Direct, .owners = owners};
  Level over{.pattern = across, .owners = static_cast<int>(hosts.size())};
  over.groups.resize(static_cast<size_t>(owners));
  Rank next = 0;
  for (const int size : hosts) {
    inside.groups.emplace_back();
    for (int i = 0; i < size; ++i, ++next) {
      inside.groups.back().push_back(next);
      if (i < owners) over.groups[static_cast<size_t>(i)].push_back(next);
    }
  }
  shape.levels.push_back(inside);
  (across_is_core ? shape.core : shape.levels).push_back(over);
  return shape;
}

int ceil_log2(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }

void prove_allreduce(const std::function<Staged(int)>& shape_of, const std::function<int(int)>& roundings) {
  for (int n = 1; n <= kMaxRanks; ++n) {
    const Staged shape = shape_of(n);
    for (const bool in_place : {false, true}) {
      const VerifyReport report = prove(Collective::AllReduce, n, in_place, shape);
      if (n > 1) {
        EXPECT_EQ(report.max_roundings, roundings(n)) << n << " ranks";
      }
    }
  }
}

TEST(OneShot, AllreduceIsProvedAndRoundsOnce) {
  prove_allreduce([](int n) { return core_shape(Pattern::OneShot, n); }, [](int) { return 1; });
}
TEST(TwoShot, AllreduceIsProvedAndRoundsOnce) {
  prove_allreduce([](int n) { return flat_shape(Pattern::Direct, n); }, [](int) { return 1; });
}
TEST(RecursiveDoubling, AllreduceIsProvedAndRoundsLogTimes) {
  prove_allreduce([](int n) { return core_shape(Pattern::RecursiveDoubling, n); }, ceil_log2);
}
TEST(Circulant, AllreduceIsProvedAndRoundsLogTimes) {
  prove_allreduce([](int n) { return flat_shape(Pattern::Circulant, n); }, ceil_log2);
}
TEST(Ring, AllreduceIsProvedAndRoundsPerHop) {
  prove_allreduce([](int n) { return flat_shape(Pattern::Ring, n); }, [](int n) { return n - 1; });
}

TEST(FlatAlgorithms, ReduceScatterAndAllgatherAreProved) {
  for (const Pattern pattern : {Pattern::Direct, Pattern::Circulant, Pattern::Ring}) {
    for (int n = 1; n <= kMaxRanks; ++n) {
      const Staged shape = flat_shape(pattern, n);
      ASSERT_TRUE(divides_evenly(shape, n));
      for (const Collective collective : {Collective::ReduceScatter, Collective::AllGather, Collective::Barrier}) {
        for (const bool in_place : {false, true}) {
          prove(collective, n, in_place, shape);
        }
      }
    }
  }
}

TEST(Windows, AreProvedOverLevelsAndCores) {
  for (const int windows : {2, 5}) {
    Staged shape = hierarchical({4, 4, 4}, Pattern::Circulant, false);
    shape.windows = windows;
    EXPECT_EQ(channels_of(shape), 2) << "one for each way";
    for (const Collective collective : kWholeAndHalves) {
      for (const bool in_place : {false, true}) {
        prove(collective, 12, in_place, shape);
      }
    }
    shape = hierarchical({4, 4, 3}, Pattern::RecursiveDoubling, true);
    shape.windows = windows;
    prove(Collective::AllReduce, 11, true, shape);
    shape = machine(1, {4, 4}, 2, level_of(Pattern::Torus, {4, 4}));
    shape.windows = windows;
    EXPECT_EQ(channels_of(shape), 8) << "four streams, both ways";
    prove(Collective::AllReduce, 32, true, shape);
  }
}

TEST(Hierarchical, EvenAndUnevenHostsAreProved) {
  const std::vector<std::vector<int>> host_lists{{2, 2},    {4, 4},    {3, 5},       {1, 4},
                                                 {2, 3, 4}, {5, 5, 5}, {1, 1, 1, 1}, {8, 8, 8, 8}};
  for (const auto& hosts : host_lists) {
    const int n = std::accumulate(hosts.begin(), hosts.end(), 0);
    for (const auto& [across, is_core] : {std::pair{Pattern::Circulant, false},
                                          {Pattern::Ring, false},
                                          {Pattern::Direct, false},
                                          {Pattern::RecursiveDoubling, true}}) {
      const Staged shape = hierarchical(hosts, across, is_core);
      for (const bool in_place : {false, true}) {
        const VerifyReport report = prove(Collective::AllReduce, n, in_place, shape);
        const int inside = hosts == std::vector<int>{1, 1, 1, 1} ? 0 : 1;
        if (across == Pattern::Circulant) {
          EXPECT_LE(report.max_roundings, inside + ceil_log2(static_cast<int>(hosts.size())));
        }
        if (!divides_evenly(shape, n)) continue;
        for (const Collective collective : kHalves) prove(collective, n, in_place, shape);
      }
    }
  }
}

TEST(Hierarchical, TorusOfPairsAcrossHostsIsProved) {
  for (const Pattern inside : {Pattern::Torus, Pattern::Swing, Pattern::Rings}) {
    for (const int windows : {1, 2}) {
      Staged shape = machine(2, {4, 4}, 2, level_of(inside, {4, 4}), Pattern::Circulant);
      shape.windows = windows;
      for (const Collective collective : kWholeAndHalves) {
        prove(collective, 64, windows == 2, shape);
      }
      shape.core = {shape.levels[2]};
      shape.core[0].pattern = Pattern::RecursiveDoubling;
      shape.levels.pop_back();
      prove(Collective::AllReduce, 64, true, shape);
    }
  }
}

TEST(Hierarchical, ATorusBothWaysAtOnceAcrossHostsIsProved) {
  for (const int windows : {1, 2}) {
    Level torus = level_of(Pattern::Torus, {4, 4});
    torus.streams = joined_streams(default_streams({4, 4}));
    Staged shape = machine(2, {4, 4}, 2, torus, Pattern::Direct);
    shape.windows = windows;
    for (const Collective collective : kWholeAndHalves) {
      prove(collective, 64, windows == 2, shape);
    }
  }
}

TEST(Hierarchical, ATorusCanBeTheCoreBelowCores) {
  // Cores share the vector, the devices' torus exchanges shares as a whole.
  Staged shape = machine(1, {4, 4}, 2, level_of(Pattern::Torus, {4, 4}));
  shape.core = {shape.levels[1]};
  shape.levels.pop_back();
  for (const Pattern pattern : {Pattern::SwingLatency, Pattern::RecursiveDoubling}) {
    shape.core[0].pattern = pattern;
    for (const bool in_place : {false, true}) prove(Collective::AllReduce, 32, in_place, shape);
  }
}

Plan routed(const Call& call, const Staged& shape) {
  return routed_alltoall_plan(call, staged_plan({Collective::AllGather, call.rank, call.nranks, -1, false}, shape, ""));
}

TEST(AllToAll, PairwiseBruckAndRoutedAreProved) {
  for (int n = 1; n <= kMaxRanks; ++n) {
    for (const bool in_place : {false, true}) {
      prove(Collective::AllToAll, n, -1, in_place, pairwise_alltoall_plan);
      prove(Collective::AllToAll, n, -1, in_place, bruck_alltoall_plan);
      if (n > 12) continue;
      const Staged ring = flat_shape(Pattern::Ring, n);
      prove(Collective::AllToAll, n, -1, in_place, [&](const Call& call) { return routed(call, ring); });
    }
  }
  const Staged grid = torus_shape(4, 4);
  prove(Collective::AllToAll, 16, -1, true, [&](const Call& call) { return routed(call, grid); });
  const Tree tree = knomial_tree(9, 0, 3);
  prove(Collective::AllToAll, 9, -1, false, [&](const Call& call) {
    return routed_alltoall_plan(call, tree_plan({Collective::AllGather, call.rank, call.nranks, -1, false}, tree, ""));
  });
}

TEST(AllToAll, BruckSendsOneMessageInEachOfTheRoundsOfItsCost) {
  for (int n = 1; n <= kMaxRanks; ++n) {
    const std::vector<Cost> rounds = bruck_alltoall_costs(n, n);  // blocks of one byte
    EXPECT_EQ(rounds.size(), static_cast<size_t>(ceil_log2(n)));
    for (Rank rank = 0; rank < n; ++rank) {
      const Plan plan = bruck_alltoall_plan({Collective::AllToAll, rank, n, -1, false});
      size_t round = 0;
      for (const Step& step : plan.steps) {
        if (step.kind != StepKind::Send) continue;
        ASSERT_LT(round, rounds.size());
        EXPECT_EQ(step.count, rounds[round].bytes) << "round " << round << " of " << n;
        ++round;
      }
      EXPECT_EQ(round, rounds.size());
    }
  }
}

}  // namespace
}  // namespace ccom
