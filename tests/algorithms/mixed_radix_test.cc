// SPDX-License-Identifier: Apache-2.0
//
// The mixed-radix exchange: proved for every number of hosts up to 33 ranks and some larger ones, with its steps
// counted by the lint, its messages inside a host held to existing links, and the factors chosen for it.
#include <gtest/gtest.h>

#include <numeric>

#include "algorithms/cost.h"
#include "algorithms/streams.h"
#include "tests/algorithms/prove.h"
#include "tests/plan/fabrics.h"

namespace ccom {
namespace {

int product(const std::vector<int>& factors) {
  return std::accumulate(factors.begin(), factors.end(), 1, std::multiplies{});
}

Radix radix_shape(int hosts, const std::vector<int>& dims) {
  Radix shape{.dims = dims};
  Rank next = 0;
  for (int h = 0; h < hosts; ++h) {
    for (int i = 0; i < product(dims); ++i) {
      if (i == 0) shape.hosts.emplace_back();
      shape.hosts.back().push_back(next++);
    }
  }
  shape.radices = choose_radices(hosts, product(dims));
  return shape;
}

std::vector<Plan> plans_of(const Radix& shape) {
  const auto n = static_cast<int>(shape.hosts.size() * shape.hosts[0].size());
  std::vector<Plan> plans;
  for (Rank r = 0; r < n; ++r) {
    plans.push_back(mixed_radix_plan({Collective::AllReduce, r, n, -1, false}, shape, "mixed_radix"));
  }
  return plans;
}

void prove_both(const Radix& shape) {
  const int n = static_cast<int>(shape.hosts.size() * shape.hosts[0].size());
  for (const bool in_place : {false, true}) {
    const VerifyReport report = prove(Collective::AllReduce, n, -1, in_place,
                                      [&](const Call& call) { return mixed_radix_plan(call, shape, "mixed_radix"); });
    EXPECT_LE(report.max_roundings, mixed_radix_cost(shape, 1).roundings);
  }
}

TEST(MixedRadix, IsProvedForAllHostsOfUpTo33Ranks) {
  const std::vector<std::vector<int>> all = {{2},    {3},    {4},    {5},       {8},       {2, 1},    {4, 1},   {3, 1},
                                             {6, 1}, {2, 2}, {4, 2}, {2, 2, 1}, {3, 2, 1}, {2, 4, 2}, {4, 4, 1}};
  for (const std::vector<int>& dims : all) {
    for (int hosts = 1; hosts * product(dims) <= kMaxRanks; ++hosts) prove_both(radix_shape(hosts, dims));
  }
}

TEST(MixedRadix, IsProvedForMoreHostsThanRanksOfOne) {
  prove_both(radix_shape(17, {4, 4, 1}));  // a prime: one host is folded
  prove_both(radix_shape(12, {2, 2, 1}));  // 4 x 3
  prove_both(radix_shape(9, {3, 2, 1}));   // 3 x 3 of 6 ranks
  prove_both(radix_shape(30, {4, 4, 2}));  // one round, not all ranks take part
  prove_both(radix_shape(23, {5}));
}

TEST(MixedRadix, UsesNeighboursInsideAHostOnly) {
  const Radix shape = radix_shape(6, {4, 3, 2});
  const Rank size = 24;
  for (const Plan& plan : plans_of(shape)) {
    for (const Step& step : plan.steps) {
      if (step.kind != StepKind::Send || step.peer / size != plan.rank / size) continue;
      int apart = 0;
      bool neighbours = true;
      for (const uint8_t d : {0, 1, 2}) {
        const int here = static_cast<int>(Grid(shape.dims, static_cast<uint32_t>(plan.rank % size)).coordinate(d));
        const int there = static_cast<int>(Grid(shape.dims, static_cast<uint32_t>(step.peer % size)).coordinate(d));
        if (here == there) continue;
        ++apart;
        const int way = std::abs(here - there);
        neighbours &= way == 1 || way == shape.dims[d] - 1;
      }
      EXPECT_TRUE(apart == 1 && neighbours) << plan.rank << " -> " << step.peer;
    }
  }
}

TEST(MixedRadix, SpreadsARoundOverTheDevices) {
  const Radix shape = radix_shape(9, {4, 4});  // radix 9 over 4 devices of 4 cores: 2 or 3 messages each
  ASSERT_EQ(shape.radices, std::vector{9});
  std::vector<int> messages(4);
  for (const Plan& plan : plans_of(shape)) {
    for (const Step& step : plan.steps) {
      if (plan.rank < 16 && step.kind == StepKind::Send && step.peer >= 16)
        ++messages[static_cast<size_t>(plan.rank / 4)];
    }
  }
  EXPECT_EQ(messages, (std::vector{2, 2, 2, 2}));
}

TEST(MixedRadix, TakesTheStepsOfItsClosedForm) {
  for (const auto& [hosts, dims] :
       {std::pair{6, std::vector{4, 3, 2}}, {16, {4, 4, 1}}, {12, {2, 2, 1}}, {5, {8}}, {17, {4, 4}}}) {
    const Radix shape = radix_shape(hosts, dims);
    const std::vector<Plan> plans = plans_of(shape);
    const Result<LintReport> run = lint(plans, mesh_fabric(static_cast<int>(plans.size())));
    const RadixCost cost = mixed_radix_cost(shape, 1);
    EXPECT_EQ(static_cast<double>(run->rounds.size()), cost.inside.steps + cost.across.steps) << hosts << " hosts";
    // Each NIC's messages: one per round, and one of a fold.
    for (const Plan& plan : plans) {
      size_t across = 0;
      for (const Step& step : plan.steps) {
        if (step.kind == StepKind::Send) across += step.peer / product(dims) != plan.rank / product(dims) ? 1 : 0;
      }
      EXPECT_LE(across, cost.across.posts);
    }
  }
}

TEST(MixedRadix, JoinsSixHundredFortyHostsInThreeRounds) {
  const Radix shape = radix_shape(640, {4, 4, 1});
  EXPECT_EQ(shape.radices, (std::vector{10, 8, 8}));
  EXPECT_EQ(mixed_radix_cost(shape, 8).across.steps, 3);
  EXPECT_EQ(mixed_radix_cost(shape, 8).inside.steps, 16);
}

TEST(ChooseRadices, FindsFewEqualFactorsOrFolds) {
  EXPECT_EQ(choose_radices(1, 16), std::vector<int>{});
  EXPECT_EQ(choose_radices(16, 1), std::vector<int>{});
  EXPECT_EQ(choose_radices(16, 16), std::vector{16});
  EXPECT_EQ(choose_radices(64, 16), (std::vector{8, 8}));
  EXPECT_EQ(choose_radices(2, 2), std::vector{2});
  EXPECT_EQ(choose_radices(17, 16), std::vector{16}) << "one host is folded";
  EXPECT_EQ(choose_radices(1000, 16), (std::vector{10, 10, 10}));
  for (int hosts = 2; hosts <= 700; ++hosts) {
    for (const int most : {2, 4, 16, 32}) {
      const std::vector<int> radices = choose_radices(hosts, most);
      const int joined = product(radices);
      EXPECT_LE(joined, hosts);
      EXPECT_LE(hosts, 2 * joined);
      for (const int radix : radices) EXPECT_TRUE(radix >= 2 && radix <= most);
    }
  }
}

}  // namespace
}  // namespace ccom
