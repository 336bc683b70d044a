// SPDX-License-Identifier: Apache-2.0
//
// The plan language: partitions, derived dependencies, the executor's order, the printer, and the verifier's rules,
// each broken once, with the broken rule in the text (mutation_test.cc breaks everything else).
#include <gtest/gtest.h>

#include <functional>

#include "algorithms/collectives.h"
#include "plan/executor.h"
#include "plan/partition.h"
#include "plan/print.h"
#include "plan/verify.h"
#include "tests/golden.h"
#include "tests/plan/families.h"

namespace ccom {
namespace {

std::vector<Plan> allreduce_plans(Pattern pattern, int n, const char* name = "test") {
  const bool is_core = pattern == Pattern::OneShot || pattern == Pattern::RecursiveDoubling;
  const Staged shape = is_core ? core_shape(pattern, n) : flat_shape(pattern, n);
  return plans_of(n, [&](Rank r) { return staged_plan({Collective::AllReduce, r, n}, shape, name); });
}

TEST(Partition, CoversEveryElementOnceInOrder) {
  for (const size_t count : {0UL, 1UL, 5UL, 16UL, 1000UL, 65537UL, 1000003UL}) {
    for (const uint32_t blocks : {1U, 2U, 3U, 7U, 64U}) {
      const Partition partition(count, blocks, 4);
      size_t sum = 0;
      for (uint32_t b = 0; b < blocks; ++b) {
        EXPECT_EQ(partition.offset(b), sum);
        sum += partition.elements(b, 1);
      }
      EXPECT_EQ(sum, count);
      EXPECT_EQ(partition.elements(0, blocks), count);
    }
  }
}

TEST(Partition, KeepsScratchRunsContiguous) {
  // A run of k slots must hold k blocks: every block but the last non-empty one is full.
  const Partition partition(1003, 8, 4);
  for (uint32_t b = 0; b + 1 < 8; ++b) {
    if (partition.elements(b + 1, 1) > 0) {
      EXPECT_EQ(partition.elements(b, 1), partition.slot_offset(1));
    }
  }
}

Plan scratch_plan(std::vector<Step> steps) {
  Plan plan;
  plan.input_units = plan.output_units = 1;
  plan.scratch_slots = 4;
  plan.steps = std::move(steps);
  return plan;
}

std::vector<uint32_t> successors(const Dependencies& d, uint32_t step) {
  const auto span = d.successors_of(step);
  return {span.begin(), span.end()};
}

TEST(Dependencies, OrderReadAfterWriteWriteAfterReadAndWriteAfterWrite) {
  const Dependencies d = derive_dependencies(scratch_plan({
      copy_of(Buffer::Input, 0, Buffer::Scratch, 0),    // 0 writes s0
      copy_of(Buffer::Scratch, 0, Buffer::Scratch, 1),  // 1 reads s0
      copy_of(Buffer::Input, 0, Buffer::Scratch, 0),    // 2 overwrites s0: after 1
      copy_of(Buffer::Input, 0, Buffer::Scratch, 1),    // 3 overwrites s1: after 1
      copy_of(Buffer::Input, 0, Buffer::Scratch, 2),    // 4 touches nothing of these
  }));
  EXPECT_EQ(successors(d, 0), (std::vector<uint32_t>{1}));
  EXPECT_EQ(successors(d, 1), (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(d.waits_for, (std::vector<uint32_t>{0, 1, 1, 1, 0}));
}

TEST(Dependencies, SeeThatAliasedBuffersAreOne) {
  Plan plan =
      scratch_plan({copy_of(Buffer::Input, 0, Buffer::Scratch, 0), copy_of(Buffer::Scratch, 1, Buffer::Output, 0)});
  EXPECT_EQ(derive_dependencies(plan).waits_for, (std::vector<uint32_t>{0, 0}));
  plan.in_place = true;
  EXPECT_EQ(derive_dependencies(plan).waits_for, (std::vector<uint32_t>{0, 1}));
}

TEST(Executor, StartsTransfersOfAChannelInProgramOrder) {
  // Two sends to one peer: the first waits for a copy, the second for nothing; it must still come second.
  Plan plan = scratch_plan({copy_of(Buffer::Input, 0, Buffer::Scratch, 0)});
  plan.nranks = 2;
  plan.steps.push_back({.kind = StepKind::Send, .source_buffer = Buffer::Scratch, .peer = 1, .source = 0, .count = 1});
  plan.steps.push_back({.kind = StepKind::Send, .source_buffer = Buffer::Input, .peer = 1, .source = 0, .count = 1});
  const Dependencies d = derive_dependencies(plan);
  Executor executor(d);
  std::vector<uint32_t> ready;
  executor.start(ready);
  EXPECT_EQ(ready, (std::vector<uint32_t>{0}));
  ready.clear();
  executor.done(0, ready);
  EXPECT_EQ(ready, (std::vector<uint32_t>{1, 2}));
  executor.done(2, ready);  // the second may be done first
  EXPECT_FALSE(executor.finished());
  executor.done(1, ready);
  EXPECT_TRUE(executor.finished());
}

TEST(Executor, StartsSendsOfAnEgressInProgramOrder) {
  Plan plan = scratch_plan({copy_of(Buffer::Input, 0, Buffer::Scratch, 0)});
  plan.nranks = 4;
  const auto send = [&](Buffer from, uint8_t egress, Rank peer) {
    plan.steps.push_back(
        {.kind = StepKind::Send, .source_buffer = from, .egress = egress, .peer = peer, .source = 0, .count = 1});
  };
  send(Buffer::Scratch, 1, 1);
  send(Buffer::Input, 1, 2);  // its data are there, but it leaves by the same wire
  send(Buffer::Input, 2, 3);
  const Dependencies d = derive_dependencies(plan);
  Executor executor(d);
  std::vector<uint32_t> ready;
  executor.start(ready);
  EXPECT_EQ(ready, (std::vector<uint32_t>{0, 3}));
  ready.clear();
  executor.done(0, ready);
  EXPECT_EQ(ready, (std::vector<uint32_t>{1, 2}));
}

TEST(Executor, StartsWhatIsReadyInProgramOrderOverAllChannels) {
  Plan plan = scratch_plan({});
  plan.nranks = 3;
  for (const Rank peer : {1, 2, 1, 2}) {
    plan.steps.push_back(
        {.kind = StepKind::Send, .source_buffer = Buffer::Input, .peer = peer, .source = 0, .count = 1});
  }
  const Dependencies d = derive_dependencies(plan);
  Executor executor(d);
  std::vector<uint32_t> ready;
  executor.start(ready);
  EXPECT_EQ(ready, (std::vector<uint32_t>{0, 1, 2, 3}));
}

std::string verdict(const std::vector<Plan>& plans) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Result<VerifyReport> report = verify(plans, seed);
    if (!report) return report.error().message();
  }
  return "";
}

TEST(Verifier, RejectsARingThatWaitsInACircle) {
  // Everybody sends what it has yet to receive.
  std::vector<Plan> plans(3);
  for (Rank r = 0; r < 3; ++r) {
    Plan& plan = plans[static_cast<size_t>(r)];
    plan.collective = Collective::Broadcast;
    plan.rank = r;
    plan.nranks = 3;
    plan.root = 0;
    plan.input_units = r == 0 ? 1 : 0;
    plan.output_units = 1;
    plan.steps.push_back({.kind = StepKind::Receive, .target_buffer = Buffer::Output, .peer = (r + 2) % 3, .count = 1});
    plan.steps.push_back({.kind = StepKind::Send, .source_buffer = Buffer::Output, .peer = (r + 1) % 3, .count = 1});
  }
  EXPECT_NE(verdict(plans).find("waits for ever"), std::string::npos) << verdict(plans);
}

TEST(Verifier, RejectsAPlanThatOverwritesItsInputInPlace) {
  // Pairwise all-to-all without scratch: fine out of place, a deadlock in place.
  std::vector<Plan> plans = plans_of(2, [](Rank r) { return pairwise_alltoall_plan({Collective::AllToAll, r, 2}); });
  ASSERT_EQ(verdict(plans), "");
  for (Plan& plan : plans) plan.in_place = true;
  EXPECT_NE(verdict(plans), "");
}

TEST(Verifier, RejectsOutOfRangeRunsAndWritesToTheInput) {
  std::vector<Plan> bad = allreduce_plans(Pattern::Ring, 3);
  bad[0].steps[1].target = 7;
  EXPECT_NE(verdict(bad).find("out of range"), std::string::npos);
  bad = allreduce_plans(Pattern::Ring, 3);
  bad[0].steps[1].target_buffer = Buffer::Input;
  EXPECT_NE(verdict(bad).find("writes to the input"), std::string::npos);
}

std::string all_ranks(const std::vector<Plan>& plans) {
  std::string text;
  for (const Plan& plan : plans) text += to_text(plan) + "\n";
  return text;
}

TEST(Golden, PlansOfFourRanks) {
  const std::pair<const char*, Pattern> flat[] = {{"one_shot", Pattern::OneShot},
                                                  {"two_shot", Pattern::Direct},
                                                  {"recursive_doubling", Pattern::RecursiveDoubling},
                                                  {"circulant", Pattern::Circulant},
                                                  {"ring", Pattern::Ring}};
  for (const auto& [name, pattern] : flat) {
    expect_golden(std::string(name) + "_allreduce_4.txt", all_ranks(allreduce_plans(pattern, 4, name)));
  }
  const auto picture = [](const char* name, const std::function<Plan(const Call&, const char*)>& make) {
    const auto plan_of = [&](Rank r) { return make({Collective::AllReduce, r, 4}, name); };
    expect_golden(std::string(name) + "_allreduce_4.txt", all_ranks(plans_of(4, plan_of)));
  };
  const Staged torus = torus_shape(2, 2), bine = flat_shape(Pattern::Bine, 4);
  Staged swing = flat_shape(Pattern::Swing, 4);
  swing.levels[0].dims = {4};
  const Staged hierarchical{{{Pattern::Direct, 2, {{0, 1}, {2, 3}}}, {Pattern::Circulant, 2, {{0, 2}, {1, 3}}}}, {}};
  const Radix radix{{{0, 1}, {2, 3}}, {2}, {2}};
  picture("torus", [&](const Call& call, const char* name) { return staged_plan(call, torus, name); });
  picture("swing", [&](const Call& call, const char* name) { return staged_plan(call, swing, name); });
  picture("hierarchical", [&](const Call& call, const char* name) { return staged_plan(call, hierarchical, name); });
  picture("mixed_radix", [&](const Call& call, const char* name) { return mixed_radix_plan(call, radix, name); });
  picture("double_tree",
          [](const Call& call, const char* name) { return tree_plan(call, double_tree(call.nranks, -1, 1), name); });
  picture("bine", [&](const Call& call, const char* name) { return staged_plan(call, bine, name); });
  for (const Collective collective :
       {Collective::Broadcast, Collective::Reduce, Collective::Gather, Collective::Scatter}) {
    const auto plan_of = [&](Rank r) { return tree_plan({collective, r, 4, 0}, knomial_tree(4, 0, 2), "binomial"); };
    expect_golden("binomial_" + std::string(name_of(collective)) + "_4.txt", all_ranks(plans_of(4, plan_of)));
  }
}

// Of eight ranks: with four, all distances are 1.
TEST(Golden, BineOfEightRanks) {
  const std::vector<Rank> order = flat_level(Pattern::Direct, 8).groups[0];
  for (const Collective collective : {Collective::Broadcast, Collective::Gather, Collective::AllToAll}) {
    const auto plan_of = [&](Rank r) {
      const Call call{collective, r, 8, collective == Collective::AllToAll ? -1 : 0};
      return call.root < 0 ? bine_alltoall_plan(call) : tree_plan(call, bine_tree(order, 0), "bine");
    };
    expect_golden("bine_" + std::string(name_of(collective)) + "_8.txt", all_ranks(plans_of(8, plan_of)));
  }
}

// What lies by position: halves of units that are no runs of ranks, subtrees, and an exchange along two dimensions.
TEST(Golden, PlansByPosition) {
  Staged halves = flat_shape(Pattern::Bine, 8);
  halves.by_position = true;
  for (const Collective collective : {Collective::ReduceScatter, Collective::AllGather}) {
    const auto plan_of = [&](Rank r) { return staged_plan({collective, r, 8}, halves, "bine"); };
    expect_golden("by_position_" + std::string(name_of(collective)) + "_8.txt", all_ranks(plans_of(8, plan_of)));
  }
  Tree tree = knomial_tree(8, 1, 2);
  tree.by_position = true;
  const auto gather = [&](Rank r) { return tree_plan({Collective::Gather, r, 8, 1}, tree, "binomial"); };
  expect_golden("by_position_gather_8.txt", all_ranks(plans_of(8, gather)));
  const ExchangePlans exchange(torus_shape(2, 3), 6);
  const auto alltoall = [&](Rank r) { return exchange.make({Collective::AllToAll, r, 6}, "by_dimension"); };
  expect_golden("by_position_alltoall_6.txt", all_ranks(plans_of(6, alltoall)));
}

}  // namespace
}  // namespace ccom
