// SPDX-License-Identifier: Apache-2.0
//
// Bucket on tori whose dimensions differ in length or in speed: within 1.1 times the bound on the clock, however wires
// are shared, because windows use the links that streams leave idle (algorithms/stream_time.cc).
#include <gtest/gtest.h>

#include "algorithms/streams.h"
#include "planner/bound.h"
#include "planner/planner.h"
#include "sim/simulator.h"

namespace ccom {
namespace {

double times_the_bound(const std::string& machine, Collective collective, size_t bytes, Sharing sharing,
                       const char* algorithm = "torus") {
  const Topology topology = *make_topology(machine);
  const Question question{.collective = collective, .bytes = bytes};
  // With as many channels as a communicator opens.
  const Settings settings{.forced = algorithm, .most_channels = channels_needed(topology, algorithm)};
  const Choice choice = *choose(topology, settings, question);
  SimOptions options{.unit_bytes = bytes / largest_units(collective, topology.nranks()), .sharing = sharing};
  Program program = choice.program();
  program.tile_bytes = 0;  // as it is priced
  const auto report = simulate_program(topology, program, options);
  EXPECT_TRUE(report) << report.error().message();
  return report ? report->time_ns / lower_bound(topology, question).time_ns() : INFINITY;
}

class InStep : public testing::TestWithParam<std::string> {};

TEST_P(InStep, AnAllReduceTakesTheBound) {
  for (const Sharing sharing : {Sharing::InTurn, Sharing::Fair}) {
    EXPECT_LT(times_the_bound(GetParam(), Collective::AllReduce, 256 << 20, sharing), 1.1)
        << (sharing == Sharing::Fair ? "fairly" : "in turn");
  }
}

// Rings both ways at once and few windows: what latencies leave of it.
TEST(InStepAtOnce, AnAllReduceOf16MiBComesNearTheBound) {
  for (const char* const machine : {"torus:3x5", "torus:4x8"}) {
    EXPECT_LT(times_the_bound(machine, Collective::AllReduce, 16 << 20, Sharing::InTurn, "torus_two_way"), 1.1);
    EXPECT_LT(times_the_bound(machine, Collective::AllReduce, 16 << 20, Sharing::Fair, "torus_two_way"), 1.1);
  }
}

// Message by message, where no closed form holds.
TEST(TorusPrices, AreWhatIsSimulated) {
  for (const char* const machine :
       {"torus:3x5", "torus:4x8", "torus:2x8", "torus:8x8", "torus:3x4x5", "trn2-ultraserver/1"}) {
    const Topology topology = *make_topology(machine);
    for (const char* const algorithm : {"torus", "torus_two_way"}) {
      for (size_t bytes = 256 << 10; bytes <= 256 << 20; bytes *= 8) {
        const Question question{.collective = Collective::AllReduce, .bytes = bytes};
        const Settings settings{.forced = algorithm, .most_channels = channels_needed(topology, "")};
        const auto choice = choose(topology, settings, question);
        ASSERT_TRUE(choice) << machine << " " << algorithm;
        Program program = choice->program();
        program.tile_bytes = 0;
        const auto report = simulate_program(topology, program, {.unit_bytes = bytes});
        ASSERT_TRUE(report) << report.error().message();
        EXPECT_NEAR(choice->candidates[choice->chosen].time_ns / report->time_ns, 1, 0.035)
            << machine << " " << algorithm << " " << bytes;
      }
    }
  }
}

// A message for each unit, and rounds of the shortest lap first: not quite as near.
TEST_P(InStep, HalvesComeNearTheBound) {
  for (const Collective collective : {Collective::ReduceScatter, Collective::AllGather}) {
    EXPECT_LT(times_the_bound(GetParam(), collective, 256 << 20, Sharing::InTurn), 1.15)
        << static_cast<int>(collective);
  }
}

INSTANTIATE_TEST_SUITE_P(Tori, InStep,
                         testing::Values("torus:3x5", "torus:4x8", "torus:3x7", "torus:2x8", "torus:2x5", "torus:5x9",
                                         "torus:3x16", "trn2-ultraserver/1"));

TEST(Channels, SufficeForWindowsWhereTheyGain) {
  EXPECT_EQ(channels_needed(*make_topology("torus:4x4"), ""), 4);
  EXPECT_EQ(channels_needed(*make_topology("torus:3x5"), ""), 8);
  EXPECT_EQ(channels_needed(*make_topology("trn2-ultraserver/1"), ""), 14);  // of a broadcast's trees
}

TEST(StreamsTime, IsWhatTheBusiestLinkCarriesWhereStreamsKeepInStep) {
  Level level{.pattern = Pattern::Torus, .owners = 16, .dims = {4, 4}};
  const std::vector<double> even{1, 1};
  for (const bool down : {true, false}) EXPECT_NEAR(streams_time(level, even, down), 15. / 16 / 4, 1e-9);
  // Row-first 6 of 11, column-first 5: worked out by hand, the first lap of the one is as long as the other's.
  level = {.pattern = Pattern::Torus, .owners = 15, .dims = {3, 5}};
  level.streams = {{{1, 0}, 1, 5}, {{0, 1}, 1, 6}, {{1, 0}, -1, 5}, {{0, 1}, -1, 6}};
  EXPECT_NEAR(streams_time(level, even, true), (5. / 22 * 4 / 5) + (6. / 22 / 3 * 4 / 5), 1e-9);
  EXPECT_GT(streams_time(level, even, false), 1.2 * 14 / 15 / 4) << "a gather begins with the short laps";
}

}  // namespace
}  // namespace ccom
