// SPDX-License-Identifier: Apache-2.0
//
// The algorithms for tori: every shape proved by the verifier; steps, hops and every link's bytes counted by running
// all ranks in lock step, against the bounds and the closed forms.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <set>

#include "algorithms/collectives.h"
#include "algorithms/cost.h"
#include "algorithms/cycles.h"
#include "algorithms/streams.h"
#include "tests/algorithms/lockstep.h"
#include "tests/algorithms/prove.h"

namespace ccom {
namespace {

using Dims = std::vector<int>;

int members(const Dims& dims) { return std::accumulate(dims.begin(), dims.end(), 1, std::multiplies{}); }

Level level_of(Pattern pattern, const Dims& dims) {
  Level level = flat_level(pattern, members(dims));
  level.dims = dims;
  if (pattern == Pattern::Rings) level.cycles = hamiltonian_cycles(dims);
  return level;
}

Staged staged(const Level& level) {
  const bool core = level.pattern == Pattern::SwingLatency || level.pattern == Pattern::RecursiveDoubling;
  return core ? Staged{{}, {level}} : Staged{{level}, {}};
}

std::vector<Plan> plans_of(Collective collective, const Staged& shape, int nranks) {
  std::vector<Plan> plans;
  for (Rank r = 0; r < nranks; ++r) plans.push_back(staged_plan({collective, r, nranks, -1, false}, shape, "test"));
  return plans;
}

Lockstep lockstep(Collective collective, const Level& level) {
  const std::vector<Plan> plans = plans_of(collective, staged(level), members(level.dims));
  const uint32_t units = collective == Collective::AllReduce ? 1 : static_cast<uint32_t>(plans.size());
  return run_in_lockstep(plans, level.dims, units * plans[0].blocks_per_unit);
}

// All factorizations of up to kMaxRanks ranks into one to three dimensions of two or more.
std::vector<Dims> grids() {
  std::vector<Dims> all;
  for (int a = 1; a <= kMaxRanks; ++a) {
    all.push_back({a});
    for (int b = 2; a > 1 && a * b <= kMaxRanks; ++b) {
      all.push_back({a, b});
      for (int c = 2; a * b * c <= kMaxRanks; ++c) all.push_back({a, b, c});
    }
  }
  all.insert(all.end(), {{1, 1}, {1, 5}, {5, 1}, {3, 1, 5}});
  return all;
}

void prove_all(const Level& level) {
  const Staged shape = staged(level);
  const int n = members(level.dims);
  for (const Collective collective : {Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather}) {
    if (collective != Collective::AllReduce && !divides_evenly(shape, n)) continue;
    for (const bool in_place : {false, true}) {
      prove(collective, n, -1, in_place, [&](const Call& call) { return staged_plan(call, shape, "test"); });
    }
  }
}

bool powers_of_two(const Dims& dims) {
  return std::ranges::all_of(dims, [](int size) { return std::has_single_bit(static_cast<unsigned>(size)); });
}

TEST(Torus, EveryGridIsProved) {
  for (const Dims& dims : grids()) prove_all(level_of(Pattern::Torus, dims));
  prove_all(level_of(Pattern::Torus, {4, 4, 4}));
}

TEST(Torus, StreamsOfAnyWeightsAreProved) {
  for (const Dims& dims : {Dims{3, 5}, {2, 8}, {4, 4, 2}, {2, 3, 4}}) {
    Level level = level_of(Pattern::Torus, dims);
    level.streams = balanced_streams(dims, std::vector<double>(dims.size(), 1));
    prove_all(level);
    level.streams.resize(1);
    prove_all(level);
  }
}

TEST(Swing, EveryGridOfPowersOfTwoIsProved) {
  for (const Dims& dims : grids()) {
    if (!powers_of_two(dims)) continue;
    prove_all(level_of(Pattern::Swing, dims));
    prove_all(level_of(Pattern::SwingLatency, dims));
  }
  for (const Dims& dims : {Dims{8, 8}, {4, 4, 4}, {64}}) {
    prove_all(level_of(Pattern::Swing, dims));
    prove_all(level_of(Pattern::SwingLatency, dims));
  }
}

TEST(RecursiveDoubling, AlongDimensionsIsProvedOnEveryGrid) {
  for (const Dims& dims : grids()) {
    Level level = level_of(Pattern::RecursiveDoubling, dims);
    prove_all(level);
    level.streams = default_streams(dims);
    if (dims.size() < 3) prove_all(level);
  }
}

TEST(Rings, EveryTorusWithCyclesIsProved) {
  for (const Dims& dims : grids()) {
    const Level level = level_of(Pattern::Rings, dims);
    if (!level.cycles.empty() && members(dims) < 25) prove_all(level);
  }
  prove_all(level_of(Pattern::Rings, {4, 4, 4}));
}

TEST(Cycles, AreHamiltonianAndShareNoLink) {
  std::vector<Dims> all = grids();
  all.insert(all.end(), {{4, 4, 4}, {8, 8}, {16, 16}, {8, 16}, {5, 7}, {2, 4, 4}, {4, 8, 4}, {32, 32}});
  for (const Dims& dims : all) {
    const int n = members(dims);
    std::set<std::pair<uint32_t, uint32_t>> links;
    for (const auto& cycle : hamiltonian_cycles(dims)) {
      ASSERT_EQ(std::set<uint32_t>(cycle.begin(), cycle.end()).size(), static_cast<size_t>(n));
      for (size_t i = 0; i < cycle.size() && n > 2; ++i) {
        const uint32_t a = cycle[i];
        const uint32_t b = cycle[(i + 1) % cycle.size()];
        const Grid grid(dims, a);
        bool linked = false;
        for (uint8_t d = 0; d < dims.size(); ++d) {
          const uint32_t at = grid.coordinate(d);
          linked |= grid.at(d, (at + 1) % grid.size(d)) == b || grid.at(d, (at + grid.size(d) - 1) % grid.size(d)) == b;
        }
        EXPECT_TRUE(linked) << a << " - " << b << " of " << n;
        EXPECT_TRUE(links.insert(std::minmax(a, b)).second) << a << " - " << b << " is used twice";
      }
    }
    const auto several = std::ranges::count_if(dims, [](int size) { return size > 1; });
    if (several > 0 && std::ranges::none_of(dims, [](int size) { return size == 1 || size == 2; })) {
      EXPECT_EQ(hamiltonian_cycles(dims).size(), static_cast<size_t>(several));
    } else if (several > 1 && n % 2 == 0) {
      EXPECT_FALSE(hamiltonian_cycles(dims).empty());
    }
  }
}

// ---- Steps, hops and bytes ----------------------------------------------------------------------------------------

// An allreduce's least time on a torus with `ports` links out of every member, in shares of the vector per link.
double bound(double p, double ports) { return 2 * (p - 1) / p / ports; }

TEST(Swing, TakesEightSingleHopStepsWithAllLinksBusyOn4x4) {
  const Lockstep run = lockstep(Collective::AllReduce, level_of(Pattern::Swing, {4, 4}));
  EXPECT_EQ(run.steps, 8);
  EXPECT_TRUE(run.neighbours_only);
  EXPECT_EQ(run.idlest, 64) << "all directed links in every step";
  EXPECT_DOUBLE_EQ(run.time, bound(16, 4));
  EXPECT_DOUBLE_EQ(run.time, 0.46875);
}

TEST(Swing, TakesTwelveSingleHopStepsWithAllLinksBusyOn4x4x4) {
  const Lockstep run = lockstep(Collective::AllReduce, level_of(Pattern::Swing, {4, 4, 4}));
  EXPECT_EQ(run.steps, 12);
  EXPECT_TRUE(run.neighbours_only);
  EXPECT_EQ(run.idlest, 64 * 6);
  EXPECT_DOUBLE_EQ(run.time, bound(64, 6));
}

TEST(Swing, IsWithinATenthOfTheBoundOn8x8) {
  const Lockstep run = lockstep(Collective::AllReduce, level_of(Pattern::Swing, {8, 8}));
  EXPECT_EQ(run.steps, 12);
  EXPECT_EQ(run.hops, 20);
  EXPECT_LE(run.time, 1.10 * bound(64, 4));
  EXPECT_GT(run.time, 1.09 * bound(64, 4)) << "the published congestion";
}

TEST(SwingLatency, TakesFourSingleHopStepsOn4x4) {
  const Lockstep run = lockstep(Collective::AllReduce, level_of(Pattern::SwingLatency, {4, 4}));
  EXPECT_EQ(run.steps, 4) << "the diameter";
  EXPECT_TRUE(run.neighbours_only);
  EXPECT_NEAR(run.time, 2.13 * bound(16, 4), 0.01);
  EXPECT_DOUBLE_EQ(run.time, swing_latency_cost(level_of(Pattern::SwingLatency, {4, 4}), 1).bytes);
}

TEST(Torus, MeetsTheBoundOnSquaresAndCubes) {
  for (const auto& [dims, ports] : {std::pair{Dims{4, 4}, 4}, {{8, 8}, 4}, {{5, 5}, 4}, {{4, 4, 4}, 6}, {{7}, 2}}) {
    const Lockstep run = lockstep(Collective::AllReduce, level_of(Pattern::Torus, dims));
    EXPECT_EQ(run.steps, 2 * torus_reduce_scatter_cost(level_of(Pattern::Torus, dims), 1).steps);
    EXPECT_TRUE(run.neighbours_only);
    EXPECT_EQ(run.idlest, members(dims) * ports);
    EXPECT_NEAR(run.time, bound(members(dims), ports), 1e-12);
  }
}

TEST(Rings, MeetTheBoundWhereCyclesFillTheTorus) {
  for (const auto& [dims, ports] : {std::pair{Dims{4, 4}, 4}, {{3, 5}, 4}, {{4, 4, 4}, 6}}) {
    const Level level = level_of(Pattern::Rings, dims);
    const Lockstep run = lockstep(Collective::AllReduce, level);
    EXPECT_EQ(run.steps, 2 * rings_reduce_scatter_cost(level, 1).steps);
    EXPECT_TRUE(run.neighbours_only);
    EXPECT_NEAR(run.time, bound(members(dims), ports), 1e-12);
    EXPECT_NEAR(run.time, 2 * rings_reduce_scatter_cost(level, 1).bytes, 1e-12);
  }
}

// The busiest link of each dimension over a whole run.
std::vector<double> busiest_links(const Lockstep& run, size_t ndims) {
  std::vector<double> busiest(ndims);
  for (const auto& [link, share] : run.link) {
    double& so_far = busiest[static_cast<size_t>(std::get<1>(link))];
    so_far = std::max(so_far, share);
  }
  return busiest;
}

TEST(Loads, AreThoseOfThePlans) {
  for (const auto& [pattern, dims] : {std::pair{Pattern::Torus, Dims{4, 4}},
                                      {Pattern::Torus, {3, 5}},
                                      {Pattern::Torus, {2, 4}},
                                      {Pattern::Torus, {2, 3, 4}},
                                      {Pattern::Torus, {4, 1, 4}},
                                      {Pattern::Swing, {4, 4}},
                                      {Pattern::Swing, {8, 8}},
                                      {Pattern::Swing, {2, 4}},
                                      {Pattern::Swing, {4, 8}},
                                      {Pattern::Swing, {4, 4, 2}},
                                      {Pattern::Swing, {16}}}) {
    for (const bool balanced : {false, true}) {
      Level level = level_of(pattern, dims);
      if (balanced) level.streams = balanced_streams(dims, std::vector<double>(dims.size(), 1), pattern);
      const std::vector<double> loads = torus_loads(level);
      for (const Collective collective : {Collective::ReduceScatter, Collective::AllGather}) {
        const std::vector<double> busiest = busiest_links(lockstep(collective, level), dims.size());
        for (size_t d = 0; d < dims.size(); ++d) {
          EXPECT_NEAR(loads[d], busiest[d], 1e-12) << "pattern " << static_cast<int>(pattern) << ", dimension " << d;
        }
      }
    }
  }
}

// How much longer than all links together would take the busiest one is busy.
double imbalance(const Dims& dims, const std::vector<double>& speeds, Pattern pattern = Pattern::Torus) {
  Level level = level_of(pattern, dims);
  level.streams = balanced_streams(dims, speeds, pattern);
  EXPECT_LE(weight_sum(level.streams), 32U);
  const std::vector<double> loads = torus_loads(level);
  double out = 0, busiest = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] > 1) out += speeds[d] * (dims[d] == 2 ? 1 : 2);
    busiest = std::max(busiest, loads[d] / speeds[d]);
  }
  const double p = members(dims);
  return busiest / ((p - 1) / p / out);
}

TEST(BalancedStreams, LoadLinksInProportionToTheirBandwidth) {
  EXPECT_NEAR(imbalance({4, 4}, {1, 1}), 1, 1e-12);
  EXPECT_NEAR(imbalance({3, 5}, {1, 1}), 1, 1e-12);
  EXPECT_LE(imbalance({4, 8}, {1, 1}), 1.01);
  EXPECT_LE(imbalance({2, 4}, {1, 1}), 1.01);
  EXPECT_LE(imbalance({3, 4, 5}, {1, 1, 1}), 1.01);
  EXPECT_NEAR(imbalance({4, 4, 4}, {1, 1, 1}), 1, 1e-12);
  // An UltraServer: Z, the first dimension, at half the speed.
  EXPECT_LE(imbalance({4, 4, 4}, {64e9, 128e9, 128e9}), 1.01);
}

TEST(BalancedStreams, AreEqualShareOfAllRotationsForEqualLinks) {
  EXPECT_EQ(balanced_streams({4, 4}, {5, 5}), default_streams({4, 4}));
  const Stream rows_first{{1, 0}, 1, 1};
  EXPECT_EQ(default_streams({4, 4})[0], rows_first);
  EXPECT_EQ(default_streams({4, 4, 4}).size(), 6U);
  EXPECT_EQ(default_streams({1, 5}).size(), 2U);
}

TEST(Windows, OverlapLevelsThatUseDifferentLinks) {
  // Rings along rows, then along columns a quarter as fast: both levels take the same time, one after another.
  Staged shape{dimension_levels(Pattern::Ring, {4, 4}, flat_level(Pattern::Ring, 16).groups), {}};
  const auto time = [&](int windows) {
    shape.windows = windows;
    const std::vector<Plan> plans = plans_of(Collective::AllReduce, shape, 16);
    return run_in_lockstep(plans, {4, 4}, plans[0].blocks_per_unit, {0.25, 1}).time;
  };
  const double level = 2 * 0.75;
  EXPECT_NEAR(time(1), 2 * level, 1e-12) << "the sum";
  EXPECT_LT(time(8), 1.35 * level) << "near the maximum";
}

TEST(Costs, AreThoseOfThePlans) {
  for (const auto& [pattern, dims] : {std::pair{Pattern::Torus, Dims{3, 5}},
                                      {Pattern::Torus, {4, 4, 4}},
                                      {Pattern::Swing, {4, 8}},
                                      {Pattern::Swing, {16}},
                                      {Pattern::Rings, {4, 4}},
                                      {Pattern::SwingLatency, {8, 4}},
                                      {Pattern::RecursiveDoubling, {4, 8}}}) {
    const Level level = level_of(pattern, dims);
    Cost cost;
    switch (pattern) {
      case Pattern::Torus: cost = torus_reduce_scatter_cost(level, 1) + torus_allgather_cost(level, 1); break;
      case Pattern::Swing: cost = swing_reduce_scatter_cost(level, 1) + swing_allgather_cost(level, 1); break;
      case Pattern::Rings: cost = rings_reduce_scatter_cost(level, 1) + rings_allgather_cost(level, 1); break;
      case Pattern::SwingLatency: cost = swing_latency_cost(level, 1); break;
      default: cost = recursive_doubling_cost(level, 1);
    }
    const std::vector<Plan> plans = plans_of(Collective::AllReduce, staged(level), members(dims));
    const Lockstep run = run_in_lockstep(plans, dims, plans[0].blocks_per_unit);
    EXPECT_EQ(run.steps, cost.steps);
    if (pattern == Pattern::Swing) {
      EXPECT_EQ(run.hops, 2 * swing_hops(dims));
    }
    double posts = 0, reduced = 0;
    for (const Step& step : plans[0].steps) {
      posts += step.kind == StepKind::Send ? 1 : 0;
      if (step.kind == StepKind::ReceiveReduce) reduced += 2.0 * step.count / plans[0].blocks_per_unit;
    }
    EXPECT_EQ(posts, cost.posts) << "pattern " << static_cast<int>(pattern);
    EXPECT_NEAR(reduced, cost.reduced, 1e-9) << "pattern " << static_cast<int>(pattern);
  }
}

TEST(DimensionLevels, RunAlongRowsThenColumns) {
  const std::vector<Level> levels = dimension_levels(Pattern::Circulant, {2, 3}, {{0, 1, 2, 3, 4, 5}});
  ASSERT_EQ(levels.size(), 2U);
  EXPECT_EQ(levels[0].groups, (std::vector<std::vector<Rank>>{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(levels[1].groups, (std::vector<std::vector<Rank>>{{0, 3}, {1, 4}, {2, 5}}));
  for (const Dims& dims : grids()) {
    const int n = members(dims);
    if (n > 20) continue;
    for (const Pattern pattern : {Pattern::Circulant, Pattern::Direct}) {
      const Staged shape{dimension_levels(pattern, dims, flat_level(pattern, n).groups), {}};
      for (const Collective collective : {Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather}) {
        prove(collective, n, -1, n % 2 == 0, [&](const Call& call) { return staged_plan(call, shape, "test"); });
      }
    }
  }
}

}  // namespace
}  // namespace ccom
