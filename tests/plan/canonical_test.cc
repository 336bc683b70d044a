// SPDX-License-Identifier: Apache-2.0
//
// Canonical sums over hosts (SumOrder::Canonical): the program that brings contributions together unsummed is proved
// for hosts of many forms and placements; the verifier tells its expression from all others, and sees steps that take a
// slice for one of another length.
#include <gtest/gtest.h>

#include <string>

#include "algorithms/rank_order.h"
#include "program_shapes.h"
#include "tests/harness/results.h"

namespace ccom {
namespace {

Program direct_over(Collective collective, const HostRanks& hosts, Rank root) {
  size_t least = hosts[0].size();
  for (const std::vector<Rank>& host : hosts) least = std::min(least, host.size());
  return hierarchical_direct_program(collective, root,
                                     {.hosts = hosts,
                                      .owners = static_cast<int>(least),
                                      .spread_inside = node_choice(NodeScheme::Direct),
                                      .across = {.name = "blocks", .kind = MessageAlgorithm::Kind::Blocks},
                                      .sums_at_once = true});
}

TEST(CanonicalSums, AreProvedOnHostsOfAnyForm) {
  for (const std::vector<int>& sizes :
       {std::vector{1, 1}, {2, 2}, {4, 4}, {1, 4}, {3, 5}, {5, 1, 2}, {2, 2, 3, 2}, {3, 3, 3}, {1, 1, 1, 6}}) {
    for (const uint32_t seed : {0U, 1U, 2U}) {
      const HostRanks hosts = hosts_of(sizes, seed);
      const auto n = static_cast<Rank>(std::accumulate(sizes.begin(), sizes.end(), 0));
      for (const Rank root : {-1, 0, n / 2, n - 1}) {
        const Program program = direct_over(root < 0 ? Collective::AllReduce : Collective::Reduce, hosts, root);
        const Result<ProgramReport> report = verify_program(program, plan_source());
        ASSERT_TRUE(report) << n << " ranks, root " << root << ": " << report.error().message();
        EXPECT_EQ(report->order, SumOrder::Canonical) << n << " ranks, root " << root;
        EXPECT_EQ(report->max_roundings, 1) << n << " ranks, root " << root;
        EXPECT_EQ(sum_order(program), SumOrder::Canonical) << n << " ranks, root " << root;
      }
    }
  }
}

TEST(CanonicalSums, AreToldFromThoseOfHosts) {
  for (const int owners : {1, 2}) {
    const auto program = program_over(Collective::AllReduce, hosts_of({2, 2}), owners, -1, Pattern::OneShot);
    ASSERT_TRUE(program);
    const ProgramReport report = value_of(verify_program(*program, plan_source()));
    EXPECT_EQ(report.order, SumOrder::Ranks) << "(x0 + x1) + (x2 + x3)";
    EXPECT_EQ(sum_order(*program), SumOrder::Ranks);
  }
}

// As many contributions at once, but not in rank order.
TEST(CanonicalSums, AreToldFromThoseInAnotherOrder) {
  Program program = direct_over(Collective::AllReduce, hosts_of({2, 2}), -1);
  std::swap(program.stages[0].groups[0][0], program.stages[0].groups[0][1]);
  const ProgramReport report = value_of(verify_program(program, plan_source()));
  EXPECT_EQ(report.order, SumOrder::Any);
  EXPECT_EQ(sum_order(program), SumOrder::Any);
}

// The last slice of a vector is shorter than the others. Each step of the first stage in turn says another slice.
TEST(CanonicalSums, AreRefusedWhereAStepTakesASliceForAnother) {
  const Program program = direct_over(Collective::AllReduce, hosts_of({1, 2}), -1);
  size_t tried = 0;
  const size_t steps = stage_plan(program, program.stages[0], 0, 1, false).steps.size();
  for (size_t changed = 0; changed < steps; ++changed) {
    StagePlanSource source = plan_source();
    source.messages = [&](const Program& of, const Stage& stage, size_t group, int member, bool in_place) {
      Plan plan = stage_plan(of, stage, group, member, in_place);
      if (&stage != &program.stages[0] || member != 1) return plan;
      Step& step = plan.steps[changed];
      step.block = step.kind == StepKind::Send ? (step.block + 1) % plan.input_units : step.block + 1;
      ++tried;
      return plan;
    };
    const std::string found = message_of(verify_program(program, source, {}));
    EXPECT_NE(found.find("for one of another length"), std::string::npos) << "step " << changed << ": " << found;
  }
  EXPECT_GE(tried, 5U) << "two sends, two receives, a copy, a reduction";
}

}  // namespace
}  // namespace ccom
