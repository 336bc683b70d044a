// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "observe/rank_activity.h"

namespace ccom {
namespace {

using State = RankActivity::State;

constexpr uint64_t kSums = kind_of(Collective::AllReduce, DataType::Float32, ReduceOp::Sum, false, -1);

RankActivity in_call(Rank rank, uint64_t number, Rank waits_for = -1) {
  RankActivity activity;
  activity.rank = rank;
  activity.state = State::InCall;
  activity.call = {number, 1000, kSums};
  activity.site = "train.py:220 (step)";
  activity.waits_for = waits_for;
  activity.seconds = 0.1 * rank;  // no part of the text
  return activity;
}

RankActivity outside(Rank rank, double seconds) {
  RankActivity activity = in_call(rank, 1870);
  activity.state = State::Outside;
  activity.seconds = seconds;
  return activity;
}

TEST(ActivityText, PutsTheOddRankFirstAndTheOthersTogether) {
  std::vector<RankActivity> all;
  for (const Rank rank : {0, 1, 2, 4, 5, 6, 7}) all.push_back(in_call(rank, 1871, 3));
  RankActivity late = outside(3, 12.44);
  late.place = "train.py:214 (evaluate)";
  all.push_back(late);
  EXPECT_EQ(describe(all),
            "rank 3 is at train.py:214 (evaluate), not in a call, for 12.4 s now; "
            "ranks 0-2 and 4-7 are at train.py:220 (step) in allreduce #1871, waiting for rank 3");
}

TEST(ActivityText, WithoutAPlaceSaysTheLastCall) {
  EXPECT_EQ(
      describe({outside(3, 2), in_call(0, 1871)}),
      "rank 0 is at train.py:220 (step) in allreduce #1871; rank 3 is not in a call, for 2.0 s now (the last one: "
      "allreduce #1870 at train.py:220 (step))");
}

TEST(ActivityText, SaysWhichOtherCommunicatorARankIsIn) {
  RankActivity late = outside(1, 4);
  late.place = "in allgather #2 of communicator f4ab04 (whole) at train.py:30 (step)";
  EXPECT_EQ(describe({late}),
            "rank 1 is in allgather #2 of communicator f4ab04 (whole) at train.py:30 (step), not in a call of this "
            "communicator, for 4.0 s now");
}

TEST(ActivityText, NamesWhomAllOfAGroupWaitForAndNobodyElse) {
  EXPECT_EQ(describe({in_call(0, 5, 2), in_call(1, 5, 2)}),
            "ranks 0 and 1 are at train.py:220 (step) in allreduce #5, waiting for rank 2");
  EXPECT_EQ(describe({in_call(0, 5, 2), in_call(1, 5, 3)}), "ranks 0 and 1 are at train.py:220 (step) in allreduce #5");
}

TEST(ActivityText, NamesTheHostOfRanksThatShareOne) {
  std::vector<RankActivity> all{in_call(0, 5), in_call(1, 5), outside(2, 3), in_call(3, 5)};
  for (RankActivity& each : all) each.host = each.rank < 2 ? "a" : "b";
  EXPECT_EQ(
      describe(all),
      "rank 2 (host b) is not in a call, for 3.0 s now (the last one: allreduce #1870 at train.py:220 (step)); ranks "
      "0, 1 and 3 are at train.py:220 (step) in allreduce #5");
}

TEST(ActivityText, SaysWhoIsGoneDeadOrDoesNotRun) {
  RankActivity left = outside(0, 1), dead = outside(1, 1), stopped = in_call(2, 7), absent, transfers = in_call(4, 7);
  left.state = State::Left;
  dead.state = State::Dead;
  stopped.silent = 3.14;
  absent.rank = 3;
  transfers.state = State::Transfers;
  EXPECT_EQ(describe({left, dead, stopped, absent, transfers}),
            "rank 0 is gone after allreduce #1870; rank 1 is dead (the last one: allreduce #1870 at train.py:220 "
            "(step)); rank 2 is at train.py:220 (step) in allreduce #7, and the process has not run for 3.1 s; rank 3 "
            "is not there yet; rank 4 is at train.py:220 (step) in sends and receives");
}

TEST(ActivityText, SaysSinceWhenAMessageIsWaitedFor) {
  RankActivity waiting = outside(2, 12.04), other = outside(3, 1);
  waiting.state = State::Message;
  waiting.message = "receive from rank 3 (tag 7, 1024 bytes)";
  waiting.waits_for = 3;
  EXPECT_EQ(
      describe({waiting, other}),
      "rank 2 is at train.py:220 (step) in receive from rank 3 (tag 7, 1024 bytes), for 12.0 s now; rank 3 is not in "
      "a call, for 1.0 s now (the last one: allreduce #1870 at train.py:220 (step))");
  EXPECT_EQ(full_text_of(waiting), "at train.py:220 (step) in receive from rank 3 (tag 7, 1024 bytes), for 12.0 s now");
}

TEST(ActivityText, KindsOfAnotherProcessMayBeNone) {
  RankActivity odd = in_call(0, 9);
  odd.call.kind = UINT64_MAX;
  odd.site = "";
  EXPECT_EQ(describe({odd}), "rank 0 is in call #9");
}

TEST(ActivityText, EndsWhereThereIsNoRoom) {
  std::vector<RankActivity> all;
  for (Rank rank = 0; rank < 100; ++rank) all.push_back(in_call(rank, static_cast<uint64_t>(rank) + 1));
  const std::string text = describe(all, 200);
  EXPECT_LE(text.size(), 200U);
  EXPECT_TRUE(text.ends_with("; ...")) << text;
  EXPECT_EQ(describe(all, 10), "");
  EXPECT_EQ(describe({}), "");
}

}  // namespace
}  // namespace ccom
