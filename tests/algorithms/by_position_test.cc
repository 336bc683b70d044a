// SPDX-License-Identifier: Apache-2.0
//
// Data in the order of positions: reduce-scatter and allgather over levels and streams, and alltoall along dimensions,
// proved for machines of many forms; as many steps as the algorithm has, and the bytes that links need to carry.
#include <gtest/gtest.h>

#include <algorithm>

#include "algorithms/cost.h"
#include "tests/algorithms/torus_shapes.h"

namespace ccom {
namespace {

void prove_by_position(Staged shape, int n) {
  shape.by_position = true;
  for (const Collective collective : kHalves) {
    for (const bool in_place : {false, true}) {
      prove(collective, n, in_place, shape, n > 12 ? 1 : 3);
    }
  }
}

size_t most_steps(const Staged& shape, Collective collective, int n) {
  if (collective == Collective::AllToAll) return ExchangePlans(shape, n).make({collective, 0, n}, "").steps.size();
  return StagedPlans(shape, n, collective).make({collective, 0, n}, "").steps.size();
}

// That a rank sends.
size_t messages_of(const Staged& shape, Collective collective, int n) {
  const std::vector<Step> steps = staged_plan({collective, 0, n}, shape, "").steps;
  return static_cast<size_t>(std::ranges::count(steps, StepKind::Send, &Step::kind));
}

TEST(ByPosition, EveryGridIsProved) {
  for (const Dims& dims : grids()) {
    for (const Pattern pattern : {Pattern::Torus, Pattern::Swing, Pattern::Rings}) {
      const bool powers = std::ranges::all_of(dims, [](int size) { return (size & (size - 1)) == 0; });
      if (pattern == Pattern::Swing && !powers) continue;
      const Level level = level_of(pattern, dims);
      if (pattern == Pattern::Rings && level.cycles.empty()) continue;
      prove_by_position(staged(level), members(dims));
    }
  }
}

TEST(ByPosition, HostsOfGridsOfPairsAreProvedWithWindowsAndWeights) {
  for (const Pattern across : {Pattern::Circulant, Pattern::Ring, Pattern::Direct}) {
    for (const bool both_ways : {false, true}) {
      Level torus = level_of(Pattern::Torus, {2, 3});
      torus.streams = balanced_streams({2, 3}, {1, 2});
      if (both_ways) torus.streams = joined_streams(torus.streams);
      Staged shape = machine(3, {2, 3}, 2, torus, across);
      for (const int windows : {1, 3}) {
        shape.windows = windows;
        prove_by_position(shape, 36);
      }
    }
  }
}

// What grows with hosts are rounds between them, each of one or two messages for each stream.
TEST(ByPosition, RanksHaveAsManyStepsAsTheAlgorithm) {
  for (const Collective collective : kHalves) {
    Staged shape = machine(64, {4, 4}, 1, level_of(Pattern::Torus, {4, 4}), Pattern::Circulant);
    shape.by_position = true;
    const size_t steps = most_steps(shape, collective, 1024);
    EXPECT_LE(steps, 4u * (2 * 6 + 4 * 6) + 4 + 4 + 1) << name_of(collective);
    shape.by_position = false;
    EXPECT_GT(most_steps(shape, collective, 1024), 10 * steps) << name_of(collective);
  }
}

TEST(ByPosition, BineTakesOneMessageInEachRound) {
  for (const Collective collective : kHalves) {
    Staged shape{{flat_level(Pattern::Bine, 64)}, {}};
    EXPECT_EQ(messages_of(shape, collective, 64), 63u);
    shape.by_position = true;
    EXPECT_EQ(messages_of(shape, collective, 64), 6u);
  }
}

TEST(ByPosition, BytesOfEveryLinkAreThoseOfUnitsOneByOne) {
  for (const Dims& dims : {Dims{4, 4}, {3, 5}, {4, 4, 4}}) {
    for (const Collective collective : kHalves) {
      Staged shape = staged(level_of(Pattern::Torus, dims));
      const LintReport units = lint_of(plans_of(collective, shape, members(dims)), TorusFabric(dims));
      shape.by_position = true;
      const LintReport positions = lint_of(plans_of(collective, shape, members(dims)), TorusFabric(dims));
      EXPECT_EQ(units.link_loads, positions.link_loads);
      EXPECT_LT(positions.messages, units.messages);
    }
  }
}

// ---- AllToAll along dimensions ----

std::vector<Plan> exchange_plans(const Staged& shape, int n, bool in_place = false) {
  const ExchangePlans maker(shape, n);
  EXPECT_TRUE(maker.is_grid());
  std::vector<Plan> plans;
  for (Rank r = 0; r < n; ++r) plans.push_back(maker.make({Collective::AllToAll, r, n, -1, in_place}, "test"));
  return plans;
}

void prove_exchange(const Staged& shape, int n) {
  for (const bool in_place : {false, true}) {
    const auto report = verify(exchange_plans(shape, n, in_place), 7);
    EXPECT_TRUE(report) << report.error().message() << ", " << n << " ranks";
  }
}

TEST(UnitTrees, MessagesAreThoseOfThePlans) {
  for (const int radix : {2, 4, 8}) {
    for (const int chunks : {1, 2, 3, 16}) {
      Tree tree = knomial_tree(21, 3, radix);
      tree.by_position = true;
      tree.chunks = chunks;
      const UnitTreePlans plans(tree);
      const std::vector<int> messages = UnitTreePlans::messages(tree);
      for (Rank rank = 0; rank < 21; ++rank) {
        if (rank == 3) continue;
        const std::vector<Step> up = plans.make({Collective::Gather, rank, 21, 3}, "").steps;
        EXPECT_EQ(std::ranges::count(up, StepKind::Send, &Step::kind), messages[static_cast<size_t>(rank)])
            << "rank " << rank << ", radix " << radix << ", " << chunks << " chunks";
      }
    }
  }
}

TEST(DimensionExchange, EveryGridIsProved) {
  for (const Dims& dims : grids()) prove_exchange(staged(level_of(Pattern::Torus, dims)), members(dims));
  prove_exchange(staged(level_of(Pattern::Torus, {4, 4, 4})), 64);
}

TEST(DimensionExchange, HostsOfGridsOfPairsAreProved) {
  for (const Dims& dims : {Dims{4}, {2, 3}, {2, 2, 2}}) {
    const Staged shape = machine(3, dims, 2, level_of(Pattern::Torus, dims), Pattern::Direct);
    prove_exchange(shape, 6 * members(dims));
  }
}

TEST(DimensionExchange, LevelsThatAreNoGridAreRefused) {
  Staged shape = machine(3, {2, 2}, 1, level_of(Pattern::Torus, {2, 2}), Pattern::Direct);
  EXPECT_TRUE(ExchangePlans(shape, 12).is_grid());
  EXPECT_FALSE(ExchangePlans(shape, 24).is_grid());
  std::swap(shape.levels[1].groups[0][0], shape.levels[1].groups[1][0]);
  EXPECT_FALSE(ExchangePlans(shape, 12).is_grid());
}

// Streams are those of one torus.
TEST(DimensionExchange, TwoToriAreRefused) {
  Staged shape = machine(4, {2, 2}, 1, level_of(Pattern::Torus, {2, 2}), Pattern::Torus);
  shape.levels[1].dims = {2, 2};
  EXPECT_FALSE(ExchangePlans(shape, 16).is_grid());
}

// As many as the bisection of each dimension's rings needs, to the byte, over neighbours' links alone.
TEST(DimensionExchange, LinksCarryWhatTheBisectionNeeds) {
  for (const Dims& dims : {Dims{16}, {7}, {4, 4}, {8, 8}, {3, 5}, {4, 8}, {4, 4, 4}, {2, 4, 6}}) {
    const TorusFabric torus(dims);
    const LintReport report = lint_of(exchange_plans(staged(level_of(Pattern::Torus, dims)), members(dims)), torus);
    EXPECT_EQ(report.hops, report.messages);
    std::vector<double> most(dims.size());
    for (uint32_t link = 0; link < torus.links(); ++link) {
      most[torus.dim_of(link)] = std::max(most[torus.dim_of(link)], report.link_loads[link]);
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      EXPECT_NEAR(most[d], ring_exchange_cost(dims[d], 1).bytes, 1e-9) << "dimension " << d << " of " << dims.size();
    }
  }
}

TEST(DimensionExchange, RanksHaveAsManyStepsAsTheDimensionsHaveCoordinates) {
  const Staged shape = machine(64, {4, 4}, 1, level_of(Pattern::Torus, {4, 4}), Pattern::Direct);
  // Of two streams: twice as many messages as other hosts, and up to 14 along each ring of four.
  EXPECT_LE(most_steps(shape, Collective::AllToAll, 1024), 2u * (2 * 63 + 2 * 14 + 3 + 2) + 2);
}

}  // namespace
}  // namespace ccom
