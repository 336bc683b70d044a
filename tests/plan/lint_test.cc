// SPDX-License-Identifier: Apache-2.0
//
// The link lint on fabrics whose best plans are known: the four-port bucket on tori meets the bound with every link
// busy in every round, one-port plans are as far away as they must be, and a plan a little above the bound is an error.
#include <gtest/gtest.h>

#include <bit>

#include "plan/lint.h"
#include "plan/verify.h"
#include "tests/harness/results.h"
#include "tests/plan/fabrics.h"
#include "tests/plan/families.h"

namespace ccom {
namespace {

LintReport lint_of(int nranks, const PlanOf& plan_of, const LintFabric& fabric) {
  return value_of(lint(plans_of(nranks, plan_of), fabric));
}

LintReport lint_of(const Staged& shape, int nranks, const LintFabric& fabric) {
  return lint_of(
      nranks,
      [&](Rank r) {
        return staged_plan({Collective::AllReduce, r, nranks}, shape, "test");
      },
      fabric);
}

// 2 (p-1)/p vectors leave and reach every rank over four links.
constexpr double kBound16 = 2.0 * 15 / 16 / 4;

TEST(Lint, BucketOnAFourByFourTorusMeetsTheBoundWithAllLinksBusyInEachRound) {
  const LintReport report = lint_of(torus_shape(4, 4), 16, torus_fabric(4, 4));
  ASSERT_EQ(report.rounds.size(), 12U);
  for (const LintRound& round : report.rounds) {
    EXPECT_EQ(round.busy_links, 64U);
    EXPECT_EQ(round.messages, 64U);
  }
  EXPECT_EQ(report.bandwidth_term, kBound16);
  EXPECT_EQ(report.hops, report.messages) << "neighbours only";
  for (const double load : report.link_loads) EXPECT_EQ(load, kBound16);
  EXPECT_TRUE(check_bound(report, kBound16, 1.0).is_ok());
}

TEST(Lint, BucketMeetsTheBoundOnLargerSquares) {
  for (const int side : {3, 5, 8}) {
    const int n = side * side;
    const double bound = 2.0 * (n - 1) / n / 4;
    const LintReport report = lint_of(torus_shape(side, side), n, torus_fabric(side, side));
    EXPECT_EQ(report.rounds.size(), static_cast<size_t>(4 * (side - 1)));
    EXPECT_TRUE(check_bound(report, bound, 1.0).is_ok()) << check_bound(report, bound, 1.0).message();
    EXPECT_FALSE(check_bound(report, bound, 0.999).is_ok());
  }
}

TEST(Lint, OnePortPlansNeedFourTimesTheBound) {
  const LintFabric fabric = torus_fabric(4, 4);
  // Rows first, then columns, one direction each.
  Level rows = flat_level(Pattern::Ring, 4);
  Level columns = rows;
  rows.groups = {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}};
  columns.groups = {{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}};
  const LintReport bucket = lint_of(Staged{{rows, columns}, {}}, 16, fabric);
  EXPECT_EQ(bucket.bandwidth_term, 4 * kBound16);
  for (const LintRound& round : bucket.rounds) EXPECT_EQ(round.busy_links, 16U);
  // One ring through all, in snake order.
  Level snake = flat_level(Pattern::Ring, 16);
  snake.groups = {{0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4}};
  const LintReport ring = lint_of(Staged{{snake}, {}}, 16, fabric);
  EXPECT_EQ(ring.bandwidth_term, 4 * kBound16);
  EXPECT_EQ(ring.rounds.size(), 30U);
  EXPECT_EQ(ring.hops, ring.messages);
  EXPECT_FALSE(check_bound(ring, kBound16, 3.99).is_ok());
  EXPECT_TRUE(check_bound(ring, kBound16, 4).is_ok());
}

TEST(Lint, LongWaysAndSharedLinksCount) {
  // Recursive doubling on the torus: rank ^ 8 is two rows away, and the whole vector goes each time.
  const LintReport doubling = lint_of(core_shape(Pattern::RecursiveDoubling, 16), 16, torus_fabric(4, 4));
  ASSERT_EQ(doubling.rounds.size(), 4U);
  EXPECT_EQ(doubling.rounds[0].max_load, 1);
  EXPECT_EQ(doubling.rounds[1].max_load, 2) << "two messages of two hops share a link";
  EXPECT_EQ(doubling.hops, 16U * (1 + 2 + 1 + 2));
  EXPECT_EQ(doubling.bandwidth_term, 6);
}

TEST(Lint, APlanAFewPercentAboveTheBoundIsAnErrorThatNamesLinkAndNumbers) {
  // The bucket, and one block more from rank 0 to rank 1 at the end: 31 blocks instead of 30.
  const PlanOf plan_of = [](Rank r) {
    Plan plan = staged_plan({Collective::AllReduce, r, 16}, torus_shape(4, 4), "torus");
    if (r > 1) return plan;
    const Buffer there = Buffer::Scratch;
    plan.scratch_slots += 1;
    Step step{.kind = r == 0 ? StepKind::Send : StepKind::Receive, .channel = 9, .peer = 1 - r, .count = 1};
    if (r == 0) step.source_buffer = Buffer::Output;
    if (r == 1) step.target_buffer = there;
    if (r == 1) step.target = plan.scratch_slots - 1;
    plan.steps.push_back(step);
    return plan;
  };
  ASSERT_TRUE(verify(plans_of(16, plan_of))) << "it is correct";
  const LintReport report = lint_of(16, plan_of, torus_fabric(4, 4));
  EXPECT_DOUBLE_EQ(report.bandwidth_term, 31.0 / 64);
  const Status status = check_bound(report, kBound16, 1.01);
  EXPECT_EQ(status.code(), Code::InternalError);
  for (const char* part :
       {"allreduce torus of 16 ranks", "1.0333 x the bound of 0.468750", "link 0 carries 0.484375"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  EXPECT_TRUE(check_bound(report, kBound16, 1.04).is_ok());
}

TEST(Lint, RoundsAreThoseOfTheAlgorithms) {
  const auto rounds = [](const Staged& shape, int n) { return lint_of(shape, n, mesh_fabric(n)).rounds.size(); };
  for (const int n : {2, 3, 4, 7, 8, 16, 33}) {
    const auto log = static_cast<size_t>(std::bit_width(static_cast<unsigned>(n - 1)));
    EXPECT_EQ(rounds(core_shape(Pattern::OneShot, n), n), 1U);
    EXPECT_EQ(rounds(flat_shape(Pattern::Direct, n), n), 2U);
    // With other n some neighbouring rounds need nothing of each other.
    EXPECT_LE(rounds(flat_shape(Pattern::Circulant, n), n), 2 * log);
    if (std::has_single_bit(static_cast<unsigned>(n))) {
      EXPECT_EQ(rounds(flat_shape(Pattern::Circulant, n), n), 2 * log);
    }
    EXPECT_EQ(rounds(flat_shape(Pattern::Ring, n), n), static_cast<size_t>(2 * (n - 1)));
  }
  EXPECT_EQ(rounds(core_shape(Pattern::RecursiveDoubling, 16), 16), 4U);
  EXPECT_EQ(rounds(host_shape(4, 4, Pattern::Circulant), 16), 1U + 2 * 2 + 1);
  Tree tree = knomial_tree(8, 0, 2);
  const auto broadcast = [&](Rank r) { return tree_plan({Collective::Broadcast, r, 8, 0}, tree, "binomial"); };
  EXPECT_EQ(lint_of(8, broadcast, mesh_fabric(8)).rounds.size(), 3U);
}

TEST(Lint, TwoShotUsesEveryLinkOfAMeshOnceEachWay) {
  const LintReport report = lint_of(flat_shape(Pattern::Direct, 8), 8, mesh_fabric(8));
  for (const LintRound& round : report.rounds) EXPECT_EQ(round.busy_links, 56U);
  EXPECT_EQ(report.bandwidth_term, 2.0 / 8);
}

TEST(Lint, WeighsSlowLinks) {
  LintFabric fabric = torus_fabric(4, 4);
  fabric.weights.assign(fabric.links, 1);
  fabric.weights[5] = 2;
  const LintReport report = lint_of(torus_shape(4, 4), 16, fabric);
  EXPECT_EQ(report.bandwidth_term, 2 * kBound16) << "everybody waits for it in every round";
  EXPECT_EQ(report.busiest_link, 5U);
  EXPECT_EQ(report.link_loads[5], kBound16) << "as much as the others";
}

TEST(Lint, PlansThatDoNotMeetAndFabricsWithoutAWayAreErrors) {
  const auto ring_of = [](int n) {
    return plans_of(n, [n](Rank r) {
      return staged_plan({Collective::AllReduce, r, n}, flat_shape(Pattern::Ring, n), "ring");
    });
  };
  std::vector<Plan> plans = ring_of(4);
  plans[2].steps.pop_back();
  EXPECT_FALSE(lint(plans, mesh_fabric(4)));
  plans = ring_of(2);
  EXPECT_TRUE(lint(plans, mesh_fabric(2)));
  const LintFabric parted{1, [](Rank, Rank) { return std::span<const uint32_t>{}; }};
  EXPECT_NE(lint(plans, parted).error().message().find("no path from rank"), std::string::npos);
  EXPECT_EQ(lint(std::span<const Plan>{}, mesh_fabric(4)).error().code(), Code::InvalidArgument);
}

}  // namespace
}  // namespace ccom
