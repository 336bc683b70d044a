// SPDX-License-Identifier: Apache-2.0
//
// The timed world against times worked out by hand: one message, contention, cut-through, reductions, posting; faults;
// one host that stands for all; and that every candidate of the planner ends.
#include "sim/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/stage_plans.h"
#include "planner/planner.h"

namespace ccom {
namespace {

// A fabric whose numbers are round: 1 us a hop, 1 byte per ns, no other costs.
Topology round_numbers(const std::string& name) {
  Topology topology = *make_topology(name);
  for (Host& host : topology.hosts) {
    for (Link& link : host.imposed->links) link.speed = {1000, 1e9};
    for (Uplink& uplink : host.imposed->uplinks) uplink = {uplink.devices, {10000, 1e9}, 0};
    host.imposed->inside_device = {500, 2e9};
    host.imposed->costs = {};
  }
  return topology;
}

Plan one_message(Rank rank, int nranks, Rank from, Rank to, uint32_t blocks = 1) {
  Plan plan;
  plan.collective = Collective::SendReceive;
  plan.algorithm = "message";
  plan.rank = rank;
  plan.nranks = nranks;
  plan.input_units = plan.output_units = 1;
  plan.blocks_per_unit = blocks;
  for (uint32_t b = 0; b < blocks; ++b) {
    Step step{.kind = rank == from ? StepKind::Send : StepKind::Receive};
    step.peer = rank == from ? to : from;
    step.source = step.target = step.block = b;
    step.count = 1;
    if (rank == from || rank == to) plan.steps.push_back(step);
  }
  return plan;
}

double time_of(const Topology& topology, const PlanSource& plan_of, size_t bytes, const Faults& faults = {}) {
  SimOptions options;
  options.unit_bytes = bytes;
  options.element_bytes = 1;
  options.faults = faults;
  const auto report = simulate(topology, plan_of, options);
  EXPECT_TRUE(report) << report.error().message();
  return report ? report->time_ns : -1;
}

TEST(Simulator, OneMessageTakesLatencyAndBytes) {
  const Topology ring = round_numbers("ring:4");
  const auto near = [](Rank r) { return one_message(r, 4, 0, 1); };
  EXPECT_DOUBLE_EQ(time_of(ring, near, 5000), 1000 + 5000);
  const auto far = [](Rank r) { return one_message(r, 4, 0, 2); };  // two hops, the bytes only once: cut-through
  EXPECT_DOUBLE_EQ(time_of(ring, far, 5000), 2 * 1000 + 5000);
}

TEST(Simulator, PostingCostsTheRankOneMessageAfterAnother) {
  Topology ring = round_numbers("ring:4");
  ring.hosts[0].imposed->costs.post_ns = 100;
  const auto plan_of = [](Rank r) { return one_message(r, 4, 0, 1, 10); };
  EXPECT_DOUBLE_EQ(time_of(ring, plan_of, 10), 10 * 100 + 1000 + 1);  // one byte each
}

TEST(Simulator, MessagesOnOneLinkGoOneAfterAnother) {
  const Topology pairs = round_numbers("ring:4");
  // 0 -> 2 and 1 -> 2 meet on the link 1 -> 2.
  const auto plan_of = [](Rank r) {
    Plan plan = one_message(r, 4, 0, 2);
    if (r == 1) plan = one_message(1, 4, 1, 2);
    if (r == 2) {
      Step second = plan.steps[0];
      second.peer = 1;
      plan.output_units = 2;
      second.target = 1;
      plan.steps.push_back(second);
    }
    return plan;
  };
  // Rank 1's is first; the other's head comes at 1000 and waits until 5000.
  EXPECT_DOUBLE_EQ(time_of(pairs, plan_of, 5000), 5000 + 5000 + 1000);
}

TEST(Simulator, ASlowWireIsSlow) {
  const Topology ring = round_numbers("ring:4");
  const auto plan_of = [](Rank r) { return one_message(r, 4, 0, 1); };
  std::vector<uint32_t> path;
  Wires(ring).path(0, 1, path);
  EXPECT_DOUBLE_EQ(time_of(ring, plan_of, 5000, {.slow = {{path[0], 0.1}}, .stragglers = {}, .deaths = {}}),
                   1000 + 50000);
}

// Plans of a choice, for all ranks.
PlanSource plans_of(const Program& program, Collective collective, int nranks) {
  return message_plans(program.stages[0].messages, collective, nranks, 0);
}

TEST(Simulator, RingAllreduceWithReductionTakesItsClosedForm) {
  Topology ring = round_numbers("ring:8");
  ring.hosts[0].imposed->costs = {.post_ns = 50, .reduce_bytes_per_second = 4e9};
  const Choice choice = *choose(ring, {.forced = "ring"}, {.collective = Collective::AllReduce, .bytes = 1 << 20});
  const double chunk = (1 << 20) / 8.0;
  const double expected = 14 * (1000 + 50 + chunk) + 7 * 2 * chunk / 4;
  EXPECT_NEAR(time_of(ring, plans_of(choice.program(), Collective::AllReduce, 8), 1 << 20), expected, expected / 1000);
}

TEST(Simulator, AStragglerHoldsUpEverybody) {
  const Topology torus = round_numbers("torus:4x4");
  const Choice choice = *choose(torus, {.forced = "torus"}, {.collective = Collective::AllReduce, .bytes = 1 << 16});
  const PlanSource plan_of = plans_of(choice.program(), Collective::AllReduce, 16);
  const double healthy = time_of(torus, plan_of, 1 << 16);
  const double late = time_of(torus, plan_of, 1 << 16, {.slow = {}, .stragglers = {{5, 1e6}}, .deaths = {}});
  EXPECT_GT(late, 1e6 + healthy / 2);
  EXPECT_LE(late, 1e6 + healthy * 2);  // streams are no longer in step
}

TEST(Simulator, TheDeadNeverFinishAndNorDoThoseWhoWaitForThem) {
  const Topology torus = round_numbers("torus:4x4");
  const Choice choice = *choose(torus, {.forced = "torus"}, {.collective = Collective::AllReduce, .bytes = 1 << 16});
  SimOptions options{.unit_bytes = 1 << 16};
  options.faults.deaths = {{5, 3000}};
  const auto report = simulate(torus, plans_of(choice.program(), Collective::AllReduce, 16), options);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_LT(report->rank_done_ns[5], 0);
  EXPECT_LT(report->rank_done_ns[6], 0);
}

TEST(Simulator, PlansThatNeverEndAreAnError) {
  const Topology ring = round_numbers("ring:4");
  const auto waits = [](Rank r) { return r == 1 ? one_message(1, 4, 0, 1) : one_message(r, 4, 2, 3); };
  SimOptions options{.unit_bytes = 8};
  const auto report = simulate(ring, waits, options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), Code::InternalError);
  EXPECT_THAT(report.error().message(), testing::HasSubstr("rank 1 waits for ever"));
}

// One host for all gives the time that all hosts give, up to the order in which messages of one instant enter a wire.
TEST(Simulator, OneHostStandsForAll) {
  const Topology cluster = *make_topology("8*trn2.48xlarge/1");
  const size_t bytes = size_t{1} << 24;
  for (const char* name : {"hierarchical_radix", "hierarchical_ring", "hierarchical_swing_doubling", "ring"}) {
    const Choice choice = *choose(cluster, {.forced = name}, {.collective = Collective::AllReduce, .bytes = bytes});
    const PlanSource plan_of = plans_of(choice.program(), Collective::AllReduce, cluster.nranks());
    SimOptions options{.unit_bytes = bytes};
    const auto all = simulate(cluster, plan_of, options);
    options.fold_hosts = true;
    const auto one = simulate(cluster, plan_of, options);
    ASSERT_TRUE(all) << name << all.error().message();
    ASSERT_TRUE(one) << name << one.error().message();
    EXPECT_NEAR(one->time_ns, all->time_ns, all->time_ns / 20) << name;
    EXPECT_EQ(one->rank_done_ns.size(), 16u);
  }
}

TEST(Simulator, HostsThatAreNotAlikeAreNotFolded) {
  const Topology cluster = *make_topology("8*trn2.48xlarge/1");
  const Choice choice =
      *choose(cluster, {.forced = "mixed_radix"}, {.collective = Collective::AllReduce, .bytes = 1 << 24});
  SimOptions options{.unit_bytes = 1 << 24};
  options.fold_hosts = true;
  const auto report = simulate(cluster, plans_of(choice.program(), Collective::AllReduce, cluster.nranks()), options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), Code::NotSupported);
}

TEST(Simulator, IsTheSameInEveryRun) {
  const Topology machine = *make_topology("trn1.32xlarge");
  const Choice choice = *choose(machine, {}, {.collective = Collective::AllReduce, .bytes = 1 << 22});
  SimOptions options{.unit_bytes = 1 << 22};
  const PlanSource plan_of = plans_of(choice.program(), Collective::AllReduce, 32);
  const auto first = simulate(machine, plan_of, options);
  const auto second = simulate(machine, plan_of, options);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->rank_done_ns, second->rank_done_ns);
  EXPECT_EQ(first->events, second->events);
}

// All links of a 4x4 torus carry the same in Swing, and it takes the bound and eight single-hop steps.
TEST(Simulator, SwingOnFourByFourTakesTheBound) {
  const Topology torus = round_numbers("torus:4x4");
  const double n = 16 << 20;
  const Choice choice = *choose(torus, {.forced = "swing"}, {.collective = Collective::AllReduce, .bytes = 16 << 20});
  SimOptions options{.unit_bytes = 16 << 20};
  const auto report = simulate(torus, plans_of(choice.program(), Collective::AllReduce, 16), options);
  ASSERT_TRUE(report);
  EXPECT_NEAR(report->time_ns, 8 * 1000 + 2 * n * 15 / 16 / 4, n * 1e-4);
  uint32_t busy = 0;
  for (const WireUse& use : report->wires) busy += use.bytes > 0;
  EXPECT_EQ(busy, 64u);
}

}  // namespace
}  // namespace ccom
