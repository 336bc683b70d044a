// SPDX-License-Identifier: Apache-2.0
//
// What plans on tori are made of and priced by: cycles, streams and their weights, loads and costs in closed form
// against the plans.
#include <gtest/gtest.h>

#include <set>

#include "algorithms/cost.h"
#include "algorithms/streams.h"
#include "tests/algorithms/torus_shapes.h"

namespace ccom {
namespace {

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

std::vector<double> busiest_links(const LintReport& report, const TorusFabric& torus, size_t ndims) {
  std::vector<double> busiest(ndims);
  for (uint32_t link = 0; link < torus.links(); ++link) {
    double& so_far = busiest[torus.dim_of(link)];
    so_far = std::max(so_far, report.link_loads[link]);
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
    for (const int kind : {0, 1, 2}) {
      Level level = level_of(pattern, dims);
      if (kind > 0) level.streams = balanced_streams(dims, std::vector<double>(dims.size(), 1), pattern);
      if (kind == 2 && pattern == Pattern::Torus) level.streams = joined_streams(level.streams);
      const std::vector<double> loads = torus_loads(level);
      for (const Collective collective : kHalves) {
        const std::vector<double> busiest = busiest_links(lint_of(collective, level), TorusFabric(dims), dims.size());
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
  const TorusStream rows_first{{1, 0}, 1, 1};
  EXPECT_EQ(default_streams({4, 4})[0], rows_first);
  EXPECT_EQ(default_streams({4, 4, 4}).size(), 6U);
  EXPECT_EQ(default_streams({1, 5}).size(), 2U);
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
    const LintReport run = lint_of(plans, TorusFabric(dims));
    EXPECT_EQ(static_cast<double>(run.rounds.size()), cost.steps);
    if (pattern == Pattern::Swing) {
      EXPECT_EQ(static_cast<double>(run.hops), members(dims) * stream_count(level) * 2 * swing_hops(dims));
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

TEST(Costs, OfStreamsBothWaysAreThoseOfThePlans) {
  for (const Dims& dims : {Dims{3, 5}, {4, 4, 4}, {2, 8}, {4, 5}}) {
    Level level = level_of(Pattern::Torus, dims);
    level.streams = joined_streams(balanced_streams(dims, std::vector<double>(dims.size(), 1)));
    const Cost cost = torus_reduce_scatter_cost(level, 1) + torus_allgather_cost(level, 1);
    const std::vector<Plan> plans = plans_of(Collective::AllReduce, staged(level), members(dims));
    const auto posts = std::ranges::count(plans[0].steps, StepKind::Send, &Step::kind);
    EXPECT_EQ(static_cast<double>(posts), cost.posts);
  }
}

TEST(Costs, OfUnitsCountAMessageForEachUnitAndStream) {
  for (const Pattern pattern : {Pattern::Torus, Pattern::Swing, Pattern::Rings}) {
    const Level level = level_of(pattern, {4, 4});
    for (const Collective collective : kHalves) {
      const std::vector<Plan> plans = plans_of(collective, staged(level), 16);
      double sent = 0;
      for (const Step& step : plans[5].steps) {
        sent += step.kind == StepKind::Send ? 1 : 0;
      }
      EXPECT_EQ(sent, unit_messages(16, stream_count(level)));
    }
  }
}

}  // namespace
}  // namespace ccom
