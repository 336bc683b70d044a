// SPDX-License-Identifier: Apache-2.0
#include "observe/rank_activity.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/text.h"
#include "observe/activity_pulse.h"
#include "observe/activity_writer.h"

namespace ccom {
namespace {

using State = RankActivity::State;

constexpr uint64_t kKind = kind_of(Collective::AllReduce, DataType::Float32, ReduceOp::Sum, false, -1);

struct Rank0 {
  RankActivity now(int64_t later_ns = 0) const { return read_activity(*record, monotonic_ns() + later_ns, true); }
  void call(uint64_t number, uint64_t bytes) {
    writer.begin({number, bytes / 4, kKind}, 0, bytes);
    writer.end();
  }
  const std::unique_ptr<ActivityRecord> record = std::make_unique<ActivityRecord>();
  ActivityWriter writer{*record};
  ActivityPulse pulse{*record};
};

TEST(RankActivity, OfARankThatHasDoneNothing) {
  const Rank0 rank;
  const RankActivity activity = rank.now();
  EXPECT_EQ(activity.state, State::Outside);
  EXPECT_EQ(activity.call.number, 0U);
  EXPECT_EQ(text_of(activity), "not in a call (no call before)");
}

TEST(RankActivity, FollowsACallFromBeginToEnd) {
  Rank0 rank;
  set_call_site("train.py:220 (step)");
  rank.writer.begin({1, 1000, kKind}, call_site(nullptr), 4000);
  set_call_site("");
  RankActivity activity = rank.now();
  EXPECT_EQ(activity.state, State::InCall);
  EXPECT_EQ(activity.call, (CallDescriptor{1, 1000, kKind}));
  EXPECT_EQ(activity.site, "train.py:220 (step)");
  EXPECT_EQ(activity.seconds, -1) << "a short call is not timed unless it waits";
  EXPECT_EQ(activity.waits_for, -1);
  rank.writer.set_algorithm("ring", hash_of_text("ring"));
  rank.writer.begin_wait(7, Clock::now() - std::chrono::seconds(2));
  activity = rank.now();
  EXPECT_EQ(activity.algorithm, "ring");
  EXPECT_EQ(activity.site, "train.py:220 (step)");
  EXPECT_EQ(activity.waits_for, 7);
  EXPECT_NEAR(activity.waited, 2, 0.5);
  EXPECT_NEAR(activity.seconds, 2, 0.5);
  EXPECT_EQ(text_of(activity), "at train.py:220 (step) in allreduce #1");
  rank.writer.end_wait();
  EXPECT_EQ(rank.now().waits_for, -1);
  rank.writer.end();
  activity = rank.now();
  EXPECT_EQ(activity.state, State::Outside);
  EXPECT_EQ(text_of(activity), "not in a call (the last one: allreduce #1 at train.py:220 (step))");
  const CallTotals totals = totals_of(rank.record->counters);
  ASSERT_EQ(totals.waited_for.size(), 1U);
  EXPECT_EQ(totals.waited_for[0].rank, 7);
  EXPECT_NEAR(totals.waited_for[0].seconds, 2, 0.5);
}

TEST(RankActivity, KnowsSinceWhenThereIsNoCall) {
  Rank0 rank;
  rank.call(1, 8);
  const int64_t begin = monotonic_ns();
  rank.pulse.beat(begin);
  rank.pulse.beat(begin + 1'000'000'000);
  EXPECT_NEAR(read_activity(*rank.record, begin + 5'000'000'000, true).seconds, 5, 0.01) << "since the first beat";
  rank.call(2, 8);
  EXPECT_EQ(read_activity(*rank.record, begin + 5'000'000'000, true).seconds, 0) << "no beat has seen its end";
  rank.pulse.beat(begin + 6'000'000'000);
  EXPECT_NEAR(read_activity(*rank.record, begin + 7'000'000'000, true).seconds, 1, 0.01);
}

TEST(RankActivity, SaysThatAProcessDoesNotRun) {
  Rank0 rank;
  rank.pulse.beat(monotonic_ns());
  EXPECT_NEAR(rank.now(3'000'000'000).silent, 3, 0.5);
}

TEST(RankActivity, TellsSendsAndReceivesFromCalls) {
  Rank0 rank;
  rank.call(1, 8);
  rank.writer.begin_transfers(0);
  rank.writer.count_transfer(100);
  rank.writer.begin_wait(3, Clock::now());
  EXPECT_EQ(rank.now().state, State::Transfers);
  EXPECT_EQ(rank.now().waits_for, 3);
  rank.writer.end_wait();
  rank.writer.end_transfers();
  EXPECT_EQ(rank.now().state, State::Outside);
}

TEST(RankActivity, CountsEveryCallOnce) {
  Rank0 rank;
  for (uint64_t number = 1; number <= 1000; ++number) rank.call(number, 8);
  for (uint64_t number = 1001; number <= 1010; ++number) rank.call(number, 1 << 20);
  const CallTotals totals = totals_of(rank.record->counters);
  ASSERT_EQ(totals.calls.size(), 2U);
  EXPECT_EQ(totals.calls[0].calls, 1000U);
  EXPECT_EQ(totals.calls[0].bytes, 8000U);
  EXPECT_FALSE(totals.calls[0].is_exact);
  EXPECT_GT(totals.calls[0].seconds, 0);
  EXPECT_EQ(totals.calls[1].calls, 10U);
  EXPECT_TRUE(totals.calls[1].is_exact);
}

TEST(RankActivity, AnAnswerIsForTheTimeAfterTheLastCall) {
  Rank0 rank;
  rank.call(1, 8);
  rank.pulse.beat(monotonic_ns());
  EXPECT_TRUE(is_place_told(*rank.record, ask_place(*rank.record))) << "without a locator there is nothing to wait for";
  EXPECT_TRUE(rank.pulse.is_asked());
  EXPECT_FALSE(rank.pulse.answer(monotonic_ns()));
  EXPECT_FALSE(rank.pulse.is_asked());
  EXPECT_EQ(rank.now().place, "");
}

}  // namespace
}  // namespace ccom
