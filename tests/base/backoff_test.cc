// SPDX-License-Identifier: Apache-2.0
//
// How a wait goes on: poll, yield, block. On a clock that only the test moves: no step takes real time.
#include "base/backoff.h"

#include <gtest/gtest.h>

#include <vector>

namespace ccom {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Every look at the clock, yield and pause is counted, and takes as long as the test says.
struct World {
  Clock::time_point now{std::chrono::hours(1)};
  nanoseconds pause_takes{40};
  nanoseconds yield_takes{500};
  bool yields_switch = true;  // to another thread of this core
  int clocks = 0, yields = 0, pauses = 0, counts = 0;
};
World world;

struct FakeSystem {
  static Clock::time_point now() { return ++world.clocks, world.now; }
  static void yield() { ++world.yields, world.now += world.yield_takes; }
  static long switches() { return ++world.counts, world.yields_switch ? world.yields : 0; }
  static void pause() { ++world.pauses, world.now += world.pause_takes; }
};
using FakeBackoff = BasicBackoff<FakeSystem>;

class BackoffTest : public testing::Test {
 protected:
  BackoffTest() { world = World(); }

  static int steps_until_block(FakeBackoff& backoff) {
    int steps = 1;
    while (backoff.step() == FakeBackoff::Next::Poll) ++steps;
    return steps;
  }
  static nanoseconds since(Clock::time_point begin) { return world.now - begin; }
};

const WaitPolicy kRoomy = WaitPolicy::for_host(2, 2);
const WaitPolicy kCrowded = WaitPolicy::for_host(4, 1);

TEST_F(BackoffTest, WithACorePerRankItSpinsFirstThenYieldsThenBlocks) {
  FakeBackoff backoff(kRoomy);
  const auto begin = world.now;
  while (world.yields == 0) ASSERT_EQ(backoff.step(), FakeBackoff::Next::Poll);
  EXPECT_GE(since(begin), kRoomy.spin);
  EXPECT_LT(since(begin), 2 * kRoomy.spin + microseconds(1)) << "the clock is looked at now and then only";
  const int pauses = world.pauses;
  EXPECT_GE(pauses, 16);
  steps_until_block(backoff);
  EXPECT_EQ(world.pauses, pauses) << "no spinning after a yield";
  EXPECT_GE(since(begin), kRoomy.spin + kRoomy.yield);
  EXPECT_LT(since(begin), kRoomy.spin + kRoomy.yield + microseconds(3));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(backoff.step(), FakeBackoff::Next::Block);
}

TEST_F(BackoffTest, WithMoreRanksThanCoresItNeverSpins) {
  FakeBackoff backoff(kCrowded);
  EXPECT_EQ(backoff.step(), FakeBackoff::Next::Poll);
  EXPECT_EQ(world.yields, 1) << "the first step gives the core away";
  steps_until_block(backoff);
  EXPECT_EQ(world.pauses, 0);
}

TEST_F(BackoffTest, TheFirstYieldsCostNoLookAtTheClock) {
  FakeBackoff backoff(kCrowded);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(backoff.step(), FakeBackoff::Next::Poll);
  EXPECT_EQ(world.yields, 3);
  EXPECT_EQ(world.clocks, 0);
}

TEST_F(BackoffTest, ManyRanksOnACoreGetAsManyTimesToHandItRound) {
  EXPECT_EQ(WaitPolicy::for_host(1, 1).yield, WaitPolicy::for_host(8, 8).yield);
  EXPECT_EQ(WaitPolicy::for_host(8, 2).yield, 4 * WaitPolicy::for_host(2, 2).yield);
  EXPECT_EQ(WaitPolicy::for_host(9, 2).yield, 5 * WaitPolicy::for_host(2, 2).yield);
  EXPECT_EQ(WaitPolicy::for_host(9, 2).spin, nanoseconds(0));
}

// A yield that comes back after a slice of the scheduler: somebody computes on this core.
TEST_F(BackoffTest, BesideAComputingThreadItBlocksAfterAFewYields) {
  world.yield_takes = milliseconds(4);
  FakeBackoff crowded(kCrowded);
  steps_until_block(crowded);
  EXPECT_EQ(world.yields, 8) << "the first look at the clock sets it, the second one tells";
  world.yields = 0;
  FakeBackoff roomy(kRoomy);
  steps_until_block(roomy);
  EXPECT_LE(world.yields, 4) << "the spin before it has set the clock";
  world.yields = 0;
  WaitPolicy careful = kCrowded;
  careful.yields_per_clock = 1;
  FakeBackoff blocks_soon(careful);
  steps_until_block(blocks_soon);
  EXPECT_EQ(world.yields, 2);
}

TEST_F(BackoffTest, WhileRanksHandTheCoreRoundItKeepsYielding) {
  world.yield_takes = microseconds(1);
  FakeBackoff backoff(kCrowded);
  EXPECT_GT(steps_until_block(backoff), 700) << "4 x 200 us";
}

// Ranks that share a core, each in a session or control group of its own: a yield gives the core to none of them.
TEST_F(BackoffTest, WhereYieldsReachNobodyItBlocksSoon) {
  world.yields_switch = false;
  FakeBackoff crowded(kCrowded);
  const auto begin = world.now;
  steps_until_block(crowded);
  EXPECT_GE(since(begin), 2 * kCrowded.lone_yield);
  EXPECT_LT(since(begin), 2 * kCrowded.lone_yield + microseconds(5));
  FakeBackoff roomy(kRoomy);
  const auto again = world.now;
  steps_until_block(roomy);
  EXPECT_GE(since(again), kRoomy.spin + kRoomy.yield) << "the others have cores of their own";
}

TEST_F(BackoffTest, ShortWaitsDoNotCountSwitches) {
  FakeBackoff backoff(kCrowded);
  const auto begin = world.now;
  while (since(begin) < kCrowded.lone_yield) ASSERT_EQ(backoff.step(), FakeBackoff::Next::Poll);
  EXPECT_EQ(world.counts, 0);
}

// Who waits in ccom for a rank that waits for this one's messages, of another library, keeps those going.
TEST_F(BackoffTest, WhoWantsToBeAskedOftenIsAskedSoonAndNeverSleepsForLong) {
  for (WaitPolicy policy : {kRoomy, kCrowded}) {
    int asked = 0;
    const Interrupted ask = [&asked] { return ++asked, false; };
    policy.ask_often(ask);
    FakeBackoff backoff(policy);
    const auto begin = world.now;
    while (asked == 0) ASSERT_EQ(backoff.step(), FakeBackoff::Next::Poll);
    EXPECT_LT(since(begin), microseconds(10));
    const int yields = world.yields;
    steps_until_block(backoff);
    EXPECT_GE(asked, (world.yields - yields) / 4) << "with each look at the clock";
    for (int i = 0; i < 10; ++i) EXPECT_EQ(backoff.slice(), microseconds(100));
  }
}

TEST_F(BackoffTest, SlicesDoubleUpToACap) {
  FakeBackoff backoff(kCrowded);
  std::vector<nanoseconds> slices;
  for (int i = 0; i < 10; ++i) slices.push_back(backoff.slice());
  EXPECT_EQ(slices[0], microseconds(100));
  for (size_t i = 1; i < slices.size(); ++i) {
    EXPECT_EQ(slices[i], std::min<nanoseconds>(2 * slices[i - 1], milliseconds(5)));
  }
  EXPECT_EQ(slices.back(), milliseconds(5));
}

TEST_F(BackoffTest, BlockTellsTheTime) {
  FakeBackoff backoff(kCrowded);
  steps_until_block(backoff);
  EXPECT_EQ(backoff.now(), world.now);
  world.now += milliseconds(7);
  EXPECT_EQ(backoff.step(), FakeBackoff::Next::Block);
  EXPECT_EQ(backoff.now(), world.now);
}

TEST_F(BackoffTest, ResetBeginsAnew) {
  FakeBackoff backoff(kRoomy);
  const int steps = steps_until_block(backoff);
  const nanoseconds first = backoff.slice();
  backoff.slice();
  backoff.reset();
  world.pauses = 0;
  EXPECT_EQ(steps_until_block(backoff), steps);
  EXPECT_GT(world.pauses, 0);
  EXPECT_EQ(backoff.slice(), first);
}

// The real clock and the real yield: bounded from below only, whatever else the machine does.
TEST(Backoff, BlocksOnThisMachineToo) {
  const WaitPolicy policy{.spin = microseconds(1), .yield = microseconds(200)};
  const auto begin = Clock::now();
  Backoff backoff(policy);
  while (backoff.step() == Backoff::Next::Poll) {
  }
  EXPECT_GE(Clock::now() - begin, policy.spin + policy.yield);
}

}  // namespace
}  // namespace ccom
