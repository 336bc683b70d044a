// SPDX-License-Identifier: Apache-2.0
//
// The algorithms for tori: every shape proved by the verifier; steps, hops and every link's bytes as the lint counts
// them in lock step, against the bounds and the closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "algorithms/cost.h"
#include "algorithms/streams.h"
#include "tests/algorithms/torus_shapes.h"

namespace ccom {
namespace {

// The fewest links that any round uses.
uint32_t least_busy_links(const LintReport& report) {
  return std::ranges::min_element(report.rounds, {}, &LintRound::busy_links)->busy_links;
}

void prove_all(const Level& level) {
  const Staged shape = staged(level);
  const int n = members(level.dims);
  for (const Collective collective : kWholeAndHalves) {
    if (collective != Collective::AllReduce && !divides_evenly(shape, n)) continue;
    for (const bool in_place : {false, true}) {
      prove(collective, n, in_place, shape, n > 12 ? 1 : 3);
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

TEST(Torus, RingsBothWaysAtOnceAreProved) {
  for (const Dims& dims : grids()) {
    Level level = level_of(Pattern::Torus, dims);
    level.streams = joined_streams(balanced_streams(dims, std::vector<double>(dims.size(), 1)));
    if (!level.streams.empty()) prove_all(level);
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

// ---- Steps, hops and bytes ----------------------------------------------------------------------------------------

// An allreduce's least time on a torus with `ports` links out of every member, in shares of the vector per link.
double bound(double p, double ports) { return 2 * (p - 1) / p / ports; }

TEST(Swing, TakesSingleHopStepsWithAllLinksBusyOnSquaresAndCubesOfFour) {
  for (const auto& [dims, steps] : {std::pair{Dims{4, 4}, 8U}, {{4, 4, 4}, 12U}}) {
    const auto ports = static_cast<uint32_t>(2 * dims.size());
    const auto ranks = static_cast<uint32_t>(members(dims));
    const LintReport run = lint_of(Collective::AllReduce, level_of(Pattern::Swing, dims));
    EXPECT_EQ(run.rounds.size(), steps);
    EXPECT_EQ(run.hops, run.messages) << "neighbours only";
    EXPECT_EQ(least_busy_links(run), ranks * ports) << "all directed links in every step";
    EXPECT_DOUBLE_EQ(run.bandwidth_term, bound(ranks, ports));
  }
}

TEST(Swing, IsWithinATenthOfTheBoundOn8x8) {
  const LintReport run = lint_of(Collective::AllReduce, level_of(Pattern::Swing, {8, 8}));
  EXPECT_EQ(run.rounds.size(), 12U);
  EXPECT_EQ(run.hops, 64U * 4 * 20) << "each stream of each rank";
  EXPECT_LE(run.bandwidth_term, 1.10 * bound(64, 4));
  EXPECT_GT(run.bandwidth_term, 1.09 * bound(64, 4)) << "the published congestion";
}

TEST(SwingLatency, TakesFourSingleHopStepsOn4x4) {
  const LintReport run = lint_of(Collective::AllReduce, level_of(Pattern::SwingLatency, {4, 4}));
  EXPECT_EQ(run.rounds.size(), 4U) << "the diameter";
  EXPECT_EQ(run.hops, run.messages) << "neighbours only";
  EXPECT_NEAR(run.bandwidth_term, 2.13 * bound(16, 4), 0.01);
  EXPECT_DOUBLE_EQ(run.bandwidth_term, swing_latency_cost(level_of(Pattern::SwingLatency, {4, 4}), 1).bytes);
}

TEST(Torus, MeetsTheBoundOnSquaresAndCubes) {
  for (const auto& [dims, ports] : {std::pair{Dims{4, 4}, 4}, {{8, 8}, 4}, {{5, 5}, 4}, {{4, 4, 4}, 6}, {{7}, 2}}) {
    const LintReport run = lint_of(Collective::AllReduce, level_of(Pattern::Torus, dims));
    EXPECT_EQ(static_cast<double>(run.rounds.size()),
              2 * torus_reduce_scatter_cost(level_of(Pattern::Torus, dims), 1).steps);
    EXPECT_EQ(run.hops, run.messages) << "neighbours only";
    EXPECT_EQ(least_busy_links(run), static_cast<uint32_t>(members(dims) * ports));
    EXPECT_NEAR(run.bandwidth_term, bound(members(dims), ports), 1e-12);
  }
}

// In lock step the second of the two messages that meet in a sum has a round of its own.
TEST(Torus, BothWaysAtOnceTakeHalfOfTheStepsAndAsManyBytes) {
  for (const auto& [dims, ports] : {std::pair{Dims{4, 4}, 4}, {{5, 5}, 4}, {{4, 4, 4}, 6}, {{7}, 2}}) {
    Level level = level_of(Pattern::Torus, dims);
    level.streams = joined_streams(default_streams(dims));
    size_t steps = 0;
    for (const int size : dims) steps += static_cast<size_t>(size / 2);
    EXPECT_EQ(torus_reduce_scatter_cost(level, 1).steps, static_cast<double>(steps));
    const LintReport run = lint_of(Collective::AllReduce, level);
    EXPECT_EQ(run.rounds.size(), 2 * steps + dims.size());
    EXPECT_EQ(run.hops, run.messages) << "neighbours only";
    EXPECT_NEAR(std::ranges::max(run.link_loads), bound(members(dims), ports), 1e-12);
    EXPECT_EQ(lint_of(Collective::AllGather, level).rounds.size(), steps);
  }
}

TEST(Rings, MeetTheBoundWhereCyclesFillTheTorus) {
  for (const auto& [dims, ports] : {std::pair{Dims{4, 4}, 4}, {{3, 5}, 4}, {{4, 4, 4}, 6}}) {
    const Level level = level_of(Pattern::Rings, dims);
    const LintReport run = lint_of(Collective::AllReduce, level);
    EXPECT_EQ(static_cast<double>(run.rounds.size()), 2 * rings_reduce_scatter_cost(level, 1).steps);
    EXPECT_EQ(run.hops, run.messages) << "neighbours only";
    EXPECT_NEAR(run.bandwidth_term, bound(members(dims), ports), 1e-12);
    EXPECT_NEAR(run.bandwidth_term, 2 * rings_reduce_scatter_cost(level, 1).bytes, 1e-12);
  }
}

TEST(Windows, OverlapLevelsThatUseDifferentLinks) {
  // Rings along rows, then along columns a quarter as fast: both levels take the same time, one after another.
  Staged shape{dimension_levels(Pattern::Ring, {4, 4}, flat_level(Pattern::Ring, 16).groups), {}};
  const auto time = [&](int windows) {
    shape.windows = windows;
    const std::vector<Plan> plans = plans_of(Collective::AllReduce, shape, 16);
    return lint_of(plans, TorusFabric({4, 4}, {0.25, 1})).bandwidth_term;
  };
  const double level = 2 * 0.75;
  EXPECT_NEAR(time(1), 2 * level, 1e-12) << "the sum";
  EXPECT_LT(time(8), 1.35 * level) << "near the maximum";
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
      for (const Collective collective : kWholeAndHalves) {
        prove(collective, n, n % 2 == 0, shape);
      }
    }
  }
}

}  // namespace
}  // namespace ccom
