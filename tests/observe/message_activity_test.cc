// SPDX-License-Identifier: Apache-2.0
#include "observe/message_activity.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "observe/rank_activity.h"

namespace ccom {
namespace {

using State = RankActivity::State;
using Wait = MessageActivity::Wait;

struct RankWithMessages {
  RankActivity now() const { return read_activity(*record, monotonic_ns(), false); }
  const std::unique_ptr<ActivityRecord> record = std::make_unique<ActivityRecord>();
  ActivityWriter writer{*record};
  MessageActivity messages{*record, writer};
};

constexpr MessageEnd kFrom3{.sends = false, .peer = 3, .tag = 7, .bytes = 1024};
constexpr MessageEnd kTo5{.sends = true, .peer = 5, .tag = -1, .bytes = 8};

TEST(MessageActivity, ShowsTheOneThatIsWaitedForLongest) {
  RankWithMessages rank;
  MessageActivity::Waited of_receive, of_send;
  for (int i = 0; i < 2; ++i) rank.messages.begin();
  EXPECT_EQ(rank.now().state, State::Outside) << "nobody waits";
  EXPECT_EQ(rank.now().messages, 2U);
  set_call_site("serve.py:12 (pull)");
  Wait send(&rank.messages, kTo5, 0, of_send), receive(&rank.messages, kFrom3, call_site(nullptr), of_receive);
  set_call_site("");
  EXPECT_EQ(rank.now().state, State::Outside) << "it has not lasted";
  send.note(Clock::now() - std::chrono::seconds(1));
  EXPECT_EQ(text_of(rank.now()), "in send to rank 5 (tag -1, 8 bytes), one of 2 messages");
  receive.note(Clock::now() - std::chrono::seconds(12));
  const RankActivity activity = rank.now();
  EXPECT_EQ(activity.state, State::Message);
  EXPECT_EQ(activity.waits_for, 3);
  EXPECT_NEAR(activity.waited, 12, 0.9);
  EXPECT_EQ(text_of(activity), "at serve.py:12 (pull) in receive from rank 3 (tag 7, 1024 bytes), one of 2 messages");
  receive.complete(3);
  rank.messages.end(1024);
  EXPECT_EQ(text_of(rank.now()), "in send to rank 5 (tag -1, 8 bytes)");
  send.complete(5);
  EXPECT_EQ(rank.now().state, State::Outside);
}

TEST(MessageActivity, CountsWhatIsCompleteAndWhatItWasWaitedFor) {
  RankWithMessages rank;
  MessageActivity::Waited waited;
  rank.messages.begin();
  Wait wait(&rank.messages, kFrom3, 0, waited);
  wait.note(Clock::now() - std::chrono::seconds(2));
  EXPECT_TRUE(totals_of(rank.record->counters).calls.empty());
  wait.complete(3);
  rank.messages.end(1024);
  const CallTotals totals = totals_of(rank.record->counters);
  ASSERT_EQ(totals.calls.size(), 1U);
  EXPECT_EQ(totals.calls[0].collective, Collective::SendReceive);
  EXPECT_EQ(totals.calls[0].calls, 1U);
  EXPECT_EQ(totals.calls[0].bytes, 1024U);
  EXPECT_NEAR(totals.calls[0].waited_seconds, 2, 0.9);
  ASSERT_EQ(totals.waited_for.size(), 1U);
  EXPECT_EQ(totals.waited_for[0].rank, 3);
  EXPECT_EQ(rank.now().messages, 0U);
}

// As a wait that looks for signals now and then.
TEST(MessageActivity, RepeatedWaitsForAMessageAreOne) {
  RankWithMessages rank;
  MessageActivity::Waited waited;
  {
    Wait first(&rank.messages, kFrom3, 0, waited);
    first.note(Clock::now() - std::chrono::seconds(5));
  }
  EXPECT_EQ(rank.now().state, State::Outside);
  EXPECT_TRUE(totals_of(rank.record->counters).waited_for.empty()) << "it is not complete";
  Wait second(&rank.messages, kFrom3, 0, waited);
  second.note(Clock::now());
  EXPECT_NEAR(rank.now().waited, 5, 0.9);
  second.complete(3);
  const CallTotals totals = totals_of(rank.record->counters);
  ASSERT_EQ(totals.waited_for.size(), 1U);
  EXPECT_EQ(totals.waited_for[0].waits, 1U);
  EXPECT_NEAR(totals.waited_for[0].seconds, 5, 0.9);
}

TEST(MessageActivity, ACallIsShownBeforeAMessage) {
  RankWithMessages rank;
  MessageActivity::Waited waited;
  Wait wait(&rank.messages, kFrom3, 0, waited);
  wait.note(Clock::now());
  rank.writer.begin({1, 1, kind_of(Collective::AllReduce, DataType::Float32, ReduceOp::Sum, false, -1)}, 0, 4);
  EXPECT_EQ(rank.now().state, State::InCall);
  rank.writer.end();
  EXPECT_EQ(rank.now().state, State::Message);
}

TEST(MessageActivity, MoreThreadsThanThereIsRoomForAreCounted) {
  RankWithMessages rank;
  std::deque<MessageActivity::Waited> waited;
  std::deque<Wait> waits;
  for (int i = 0; i < 20; ++i) waits.emplace_back(&rank.messages, kFrom3, 0, waited.emplace_back());
  for (Wait& wait : waits) wait.note(Clock::now());
  for (Wait& wait : waits) wait.complete(3);
  EXPECT_EQ(rank.now().state, State::Outside);
  EXPECT_EQ(totals_of(rank.record->counters).waited_for.at(0).waits, 20U);
}

}  // namespace
}  // namespace ccom
