// SPDX-License-Identifier: Apache-2.0
//
// What messages do to one another on a wire that they share fairly, what protocols and noise cost: against times worked
// out by hand.
#include <gtest/gtest.h>

#include "sim/fair_wires.h"
#include "sim/simulator.h"

namespace ccom {
namespace {

// 1 us a hop, 1 byte per ns, no other costs than these.
Topology ring(const Costs& costs = {}) {
  Topology topology = *make_topology("ring:4");
  for (Link& link : topology.hosts[0].imposed->links) link.speed = {1000, 1e9};
  topology.hosts[0].imposed->costs = costs;
  return topology;
}

struct Message {
  Rank from = 0, to = 0;
  uint32_t bytes = 0;
  uint8_t channel = 0;
};

// Blocks are bytes; each message has its own.
PlanSource plans_of(const std::vector<Message>& messages) {
  return [messages](Rank rank) {
    Plan plan;
    plan.collective = Collective::SendReceive;
    plan.algorithm = "messages";
    plan.rank = rank;
    plan.nranks = 4;
    plan.input_units = plan.output_units = 1;
    plan.blocks_per_unit = 0;
    for (const Message& message : messages) plan.blocks_per_unit += message.bytes;
    uint32_t block = 0;
    for (const Message& message : messages) {
      Step step{.kind = rank == message.from ? StepKind::Send : StepKind::Receive};
      step.peer = rank == message.from ? message.to : message.from;
      step.channel = message.channel;
      step.source = step.target = step.block = block;
      step.count = message.bytes;
      if (rank == message.from || rank == message.to) plan.steps.push_back(step);
      block += message.bytes;
    }
    return plan;
  };
}

std::vector<double> done_ns(const Topology& topology, const std::vector<Message>& messages, SimOptions options) {
  options.unit_bytes = 0;
  for (const Message& message : messages) options.unit_bytes += message.bytes;
  options.element_bytes = 1;
  const auto report = simulate(topology, plans_of(messages), options);
  EXPECT_TRUE(report) << report.error().message();
  return report ? report->rank_done_ns : std::vector<double>(4, -1);
}

// 0 -> 2 and 1 -> 2 meet on the link 1 -> 2. The second is there at once, the first when it has passed one link.
TEST(FairSharing, MessagesOnOneLinkMoveTogether) {
  const std::vector<Message> messages{{0, 2, 5000}, {1, 2, 5000}};
  const auto in_turn = done_ns(ring(), messages, {});
  EXPECT_DOUBLE_EQ(in_turn[1], 5000 + 1000);
  EXPECT_DOUBLE_EQ(in_turn[0], 10000 + 1000);
  const auto fair = done_ns(ring(), messages, {.sharing = Sharing::Fair});
  EXPECT_DOUBLE_EQ(fair[1], 1000 + 2 * 4000 + 1000) << "1000 bytes alone, 4000 at half of the bandwidth";
  EXPECT_DOUBLE_EQ(fair[0], 10000 + 1000) << "the link is never idle";
}

TEST(FairSharing, AShortMessageDoesNotWaitForALongOne) {
  const std::vector<Message> messages{{1, 2, 50000, 0}, {1, 2, 1000, 1}, {2, 3, 1, 0}};
  const auto fair = done_ns(ring(), messages, {.sharing = Sharing::Fair});
  EXPECT_DOUBLE_EQ(fair[1], 51000 + 1000);
  const std::vector<Message> far{{0, 1, 50000, 0}, {0, 1, 1000, 1}};
  EXPECT_DOUBLE_EQ(done_ns(ring(), far, {.sharing = Sharing::Fair})[1], 51000 + 1000);
}

TEST(FairSharing, MessagesOfOneChannelFollowEachOther) {
  // From 1000 on 0 -> 2 has half of the link; the second of the others begins when the first is through, at 3000, when
  // both have 2000 bytes left.
  const std::vector<Message> messages{{1, 2, 2000, 0}, {1, 2, 2000, 0}, {0, 2, 3000, 0}};
  const auto fair = done_ns(ring(), messages, {.sharing = Sharing::Fair});
  EXPECT_DOUBLE_EQ(fair[1], 7000 + 1000);
  EXPECT_DOUBLE_EQ(fair[0], 7000 + 1000);
}

TEST(FairSharing, AWireIsNeverIdleWhileSomethingIsThere) {
  FairWires wires(1);
  SimTime due = FairWires::kNever;
  std::vector<WireEntry> off;
  SimTime sum = 0;
  for (uint32_t i = 0; i < 20; ++i) {
    const SimTime length = 1000 + 37 * i * i;
    sum += length;
    due = wires.enter(0, {.flight = i, .pipe = i % 7, .length = length}, 10 * i);
  }
  SimTime last = 0;
  while (due != FairWires::kNever) {
    last = due;
    due = wires.end(0, due, off);
  }
  EXPECT_EQ(off.size(), 20u);
  EXPECT_NEAR(static_cast<double>(last), static_cast<double>(sum), 20);
}

TEST(Protocols, ALongMessageWaitsForItsReceiver) {
  const Topology machine = ring({.rendezvous_bytes = 1000, .rendezvous_ns = 300});
  EXPECT_DOUBLE_EQ(done_ns(machine, {{0, 1, 5000}}, {})[1], 2 * 1000 + 300 + 1000 + 5000);
  EXPECT_DOUBLE_EQ(done_ns(machine, {{0, 2, 5000}}, {})[2], 4 * 1000 + 300 + 2000 + 5000) << "over two links";
  EXPECT_DOUBLE_EQ(done_ns(machine, {{0, 1, 999}}, {})[1], 1000 + 999) << "eager";
  SimOptions late;
  late.faults.stragglers = {{1, 10000}};
  EXPECT_DOUBLE_EQ(done_ns(machine, {{0, 1, 5000}}, late)[1], 10000 + 1000 + 1000 + 5000) << "asked before";
  EXPECT_DOUBLE_EQ(done_ns(machine, {{0, 1, 999}}, late)[1], 10000) << "is there already";
}

TEST(Protocols, AShortMessageThatOvertakesIsReceivedInItsTurn) {
  const Topology machine = ring({.rendezvous_bytes = 1000});
  const auto done = done_ns(machine, {{0, 1, 5000}, {0, 1, 10}}, {});
  EXPECT_DOUBLE_EQ(done[1], 3 * 1000 + 5000);
}

TEST(Protocols, ShortMessagesAreCopiedAtBothEnds) {
  const Topology machine = ring({.receive_ns = 200, .rendezvous_bytes = 1000, .copy_bytes_per_second = 1e9});
  EXPECT_DOUBLE_EQ(done_ns(machine, {{0, 1, 500}}, {})[1], 500 + 1000 + 500 + 500 + 200);
  EXPECT_DOUBLE_EQ(done_ns(machine, {{0, 1, 5000}}, {})[1], 2 * 1000 + 1000 + 5000 + 200) << "not copied";
}

TEST(Protocols, AReductionCostsSomethingBesidesItsBytes) {
  Topology machine = ring({.reduce_ns = 400});
  const auto with_sum = [](Rank rank) {
    Plan plan = plans_of({{0, 1, 1000}})(rank);
    if (rank == 1) plan.steps[0].kind = StepKind::ReceiveReduce;
    return plan;
  };
  const auto report = simulate(machine, with_sum, {.unit_bytes = 1000, .element_bytes = 1});
  ASSERT_TRUE(report);
  EXPECT_DOUBLE_EQ(report->rank_done_ns[1], 1000 + 1000 + 400);
  EXPECT_DOUBLE_EQ(done_ns(machine, {{0, 1, 1000}}, {})[1], 1000 + 1000);
}

TEST(NoiseOfRanks, HasTheMeanThatWasAskedFor) {
  double sum = 0;
  constexpr int kRuns = 400;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    sum += done_ns(ring(), {{0, 1, 5000}}, {.noise = {.message_ns = 1000, .seed = seed}})[1] - 6000;
  }
  EXPECT_NEAR(sum / kRuns, 2 * 1000, 200) << "at its start and at its end";
}

TEST(NoiseOfRanks, IsTheSameForTheSameSeed) {
  const auto with = [](uint64_t seed) {
    return done_ns(ring(), {{0, 1, 5000}}, {.noise = {.late_ns = 5000, .seed = seed}})[1];
  };
  EXPECT_EQ(with(7), with(7));
  EXPECT_NE(with(7), with(8));
  EXPECT_GT(with(7), 6000);
}

}  // namespace
}  // namespace ccom
