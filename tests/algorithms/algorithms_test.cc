// SPDX-License-Identifier: Apache-2.0
//
// Every algorithm, proved by the verifier for n = 1..33, odd shapes, every root, in place and out of place, from
// several seeds of event order; and the accuracy and traffic that its file promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <set>

#include "algorithms/collectives.h"
#include "algorithms/cost.h"
#include "algorithms/cycles.h"
#include "algorithms/streams.h"
#include "plan/print.h"
#include "tests/algorithms/prove.h"

namespace ccom {
namespace {

Staged flat(Pattern pattern, int n) { return {{flat_level(pattern, n)}, {}}; }
Staged core(Pattern pattern, int n) { return {{}, {flat_level(pattern, n)}}; }

Staged torus(int rows, int columns) {
  Staged shape = flat(Pattern::Torus, rows * columns);
  shape.levels[0].dims = {rows, columns};
  return shape;
}

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

// Pairs of cores on each device of a torus: ranks 2d and 2d+1 on device d.
Staged torus_of_pairs(int rows, int columns) {
  Staged shape;
  const int devices = rows * columns;
  Level pairs{.pattern = Pattern::Direct, .owners = 2};
  Level grid{.pattern = Pattern::Torus, .owners = devices, .dims = {rows, columns}};
  grid.groups.resize(2);
  for (int d = 0; d < devices; ++d) {
    pairs.groups.push_back({2 * d, 2 * d + 1});
    grid.groups[0].push_back(2 * d);
    grid.groups[1].push_back(2 * d + 1);
  }
  shape.levels = {pairs, grid};
  return shape;
}

int ceil_log2(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }

void prove_allreduce(const std::function<Staged(int)>& shape_of, const std::function<int(int)>& roundings) {
  for (int n = 1; n <= kMaxRanks; ++n) {
    const Staged shape = shape_of(n);
    for (const bool in_place : {false, true}) {
      const VerifyReport report = prove(Collective::AllReduce, n, -1, in_place,
                                        [&](const Call& call) { return staged_plan(call, shape, "test"); });
      if (n > 1) {
        EXPECT_EQ(report.max_roundings, roundings(n)) << n << " ranks";
      }
    }
  }
}

TEST(OneShot, AllreduceIsProvedAndRoundsOnce) {
  prove_allreduce([](int n) { return core(Pattern::OneShot, n); }, [](int) { return 1; });
}
TEST(TwoShot, AllreduceIsProvedAndRoundsOnce) {
  prove_allreduce([](int n) { return flat(Pattern::Direct, n); }, [](int) { return 1; });
}
TEST(RecursiveDoubling, AllreduceIsProvedAndRoundsLogTimes) {
  prove_allreduce([](int n) { return core(Pattern::RecursiveDoubling, n); }, ceil_log2);
}
TEST(Circulant, AllreduceIsProvedAndRoundsLogTimes) {
  prove_allreduce([](int n) { return flat(Pattern::Circulant, n); }, ceil_log2);
}
TEST(Ring, AllreduceIsProvedAndRoundsPerHop) {
  prove_allreduce([](int n) { return flat(Pattern::Ring, n); }, [](int n) { return n - 1; });
}

TEST(FlatAlgorithms, ReduceScatterAndAllgatherAreProved) {
  for (const Pattern pattern : {Pattern::Direct, Pattern::Circulant, Pattern::Ring}) {
    for (int n = 1; n <= kMaxRanks; ++n) {
      const Staged shape = flat(pattern, n);
      ASSERT_TRUE(divides_evenly(shape, n));
      for (const Collective collective : {Collective::ReduceScatter, Collective::AllGather, Collective::Barrier}) {
        for (const bool in_place : {false, true}) {
          prove(collective, n, -1, in_place, [&](const Call& call) { return staged_plan(call, shape, "test"); });
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
    for (const Collective collective : {Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather}) {
      for (const bool in_place : {false, true}) {
        prove(collective, 12, -1, in_place, [&](const Call& call) { return staged_plan(call, shape, "windows"); });
      }
    }
    shape = hierarchical({4, 4, 3}, Pattern::RecursiveDoubling, true);
    shape.windows = windows;
    prove(Collective::AllReduce, 11, -1, true, [&](const Call& call) { return staged_plan(call, shape, "windows"); });
    shape = torus_of_pairs(4, 4);
    shape.windows = windows;
    EXPECT_EQ(channels_of(shape), 8) << "four streams, both ways";
    prove(Collective::AllReduce, 32, -1, true, [&](const Call& call) { return staged_plan(call, shape, "windows"); });
  }
}

TEST(Hierarchical, EvenAndUnevenHostsAreProved) {
  const std::vector<std::vector<int>> host_lists{{2, 2},    {4, 4},    {3, 5},       {1, 4},
                                                 {2, 3, 4}, {5, 5, 5}, {1, 1, 1, 1}, {8, 8, 8, 8}};
  for (const auto& hosts : host_lists) {
    int n = 0;
    for (const int h : hosts) n += h;
    for (const auto& [across, is_core] : {std::pair{Pattern::Circulant, false},
                                          {Pattern::Ring, false},
                                          {Pattern::Direct, false},
                                          {Pattern::RecursiveDoubling, true}}) {
      const Staged shape = hierarchical(hosts, across, is_core);
      for (const bool in_place : {false, true}) {
        const VerifyReport report = prove(Collective::AllReduce, n, -1, in_place,
                                          [&](const Call& call) { return staged_plan(call, shape, "hierarchical"); });
        const int inside = hosts == std::vector<int>{1, 1, 1, 1} ? 0 : 1;
        if (across == Pattern::Circulant) {
          EXPECT_LE(report.max_roundings, inside + ceil_log2(static_cast<int>(hosts.size())));
        }
        if (!divides_evenly(shape, n)) continue;
        prove(Collective::ReduceScatter, n, -1, in_place,
              [&](const Call& call) { return staged_plan(call, shape, "hierarchical"); });
        prove(Collective::AllGather, n, -1, in_place,
              [&](const Call& call) { return staged_plan(call, shape, "hierarchical"); });
      }
    }
  }
}

// The same on `hosts` hosts, numbered host after host, without what joins them.
void repeat_on_hosts(Staged& shape, int hosts) {
  for (Level& level : shape.levels) {
    const std::vector<std::vector<Rank>> first = level.groups;
    Rank ranks = 0;
    for (const auto& group : first) ranks += static_cast<Rank>(group.size());
    for (int host = 1; host < hosts; ++host) {
      for (std::vector<Rank> group : first) {
        for (Rank& r : group) r += ranks * host;
        level.groups.push_back(group);
      }
    }
  }
}

Level equal_places(Pattern pattern, int hosts, int ranks) {
  Level across{.pattern = pattern, .owners = hosts};
  for (Rank r = 0; r < ranks; ++r) {
    across.groups.emplace_back();
    for (int host = 0; host < hosts; ++host) across.groups.back().push_back(host * ranks + r);
  }
  return across;
}

TEST(Hierarchical, TorusOfPairsAcrossHostsIsProved) {
  for (const Pattern inside : {Pattern::Torus, Pattern::Swing, Pattern::Rings}) {
    for (const int windows : {1, 2}) {
      Staged shape = torus_of_pairs(4, 4);
      shape.levels[1].pattern = inside;
      shape.levels[1].cycles = hamiltonian_cycles({4, 4});
      repeat_on_hosts(shape, 2);
      shape.levels.push_back(equal_places(Pattern::Circulant, 2, 32));
      shape.windows = windows;
      for (const Collective collective : {Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather}) {
        prove(collective, 64, -1, windows == 2, [&](const Call& call) { return staged_plan(call, shape, "torus"); });
      }
      shape.core = {equal_places(Pattern::RecursiveDoubling, 2, 32)};
      shape.levels.pop_back();
      prove(Collective::AllReduce, 64, -1, true, [&](const Call& call) { return staged_plan(call, shape, "torus"); });
    }
  }
}

TEST(Hierarchical, ATorusBothWaysAtOnceAcrossHostsIsProved) {
  for (const int windows : {1, 2}) {
    Staged shape = torus_of_pairs(4, 4);
    shape.levels[1].streams = joined_streams(default_streams({4, 4}));
    repeat_on_hosts(shape, 2);
    shape.levels.push_back(equal_places(Pattern::Direct, 2, 32));
    shape.windows = windows;
    for (const Collective collective : {Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather}) {
      prove(collective, 64, -1, windows == 2, [&](const Call& call) { return staged_plan(call, shape, "torus"); });
    }
  }
}

TEST(Hierarchical, ATorusCanBeTheCoreBelowCores) {
  // Cores share the vector, the devices' torus exchanges shares as a whole.
  Staged shape = torus_of_pairs(4, 4);
  shape.core = {shape.levels[1]};
  shape.levels.pop_back();
  for (const Pattern pattern : {Pattern::SwingLatency, Pattern::RecursiveDoubling}) {
    shape.core[0].pattern = pattern;
    prove(Collective::AllReduce, 32, -1, false, [&](const Call& call) { return staged_plan(call, shape, "core"); });
    prove(Collective::AllReduce, 32, -1, true, [&](const Call& call) { return staged_plan(call, shape, "core"); });
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
      const Staged ring = flat(Pattern::Ring, n);
      prove(Collective::AllToAll, n, -1, in_place, [&](const Call& call) { return routed(call, ring); });
    }
  }
  const Staged grid = torus(4, 4);
  prove(Collective::AllToAll, 16, -1, true, [&](const Call& call) { return routed(call, grid); });
  const Tree tree = knomial_tree(9, 0, 3);
  prove(Collective::AllToAll, 9, -1, false, [&](const Call& call) {
    return routed_alltoall_plan(call, tree_plan({Collective::AllGather, call.rank, call.nranks, -1, false}, tree, ""));
  });
}

TEST(AllToAll, BruckSendsOneMessageInEachOfTheRoundsOfItsCost) {
  for (int n = 1; n <= kMaxRanks; ++n) {
    const std::vector<Cost> rounds = bruck_alltoall_costs(n, n);  // blocks of one byte
    EXPECT_EQ(rounds.size(), n == 1 ? 0U : static_cast<size_t>(std::bit_width(static_cast<unsigned>(n - 1))));
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
