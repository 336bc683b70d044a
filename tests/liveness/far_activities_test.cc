// SPDX-License-Identifier: Apache-2.0
//
// What ranks of other hosts do: errors quote it on all hosts, whoever finds them, and a tool that has a board mapped
// learns it by asking.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "base/time.h"
#include "liveness/board.h"
#include "liveness/long_wait.h"
#include "tests/harness/waiting.h"
#include "tests/liveness/cluster.h"

namespace ccom {
namespace {

using test::Cluster;
using test::ConnectedCluster;
using testing::ContainsRegex;
using testing::HasSubstr;

CallDescriptor sum(uint64_t number) {
  return {number, 1, kind_of(Collective::AllReduce, DataType::Float32, ReduceOp::Sum, false, -1)};
}

// Rank 3 has not begun call 6; the others are in it.
void make_calls(Cluster& cluster) {
  for (Rank rank = 0; rank < cluster.ranks(); ++rank) {
    for (uint64_t number = 1; number <= (rank == 3 ? 5 : 6); ++number) {
      cluster[rank].begin_call(sum(number));
      if (number < 6) cluster[rank].activity().end();
    }
  }
}

// An error waits for what others do for a short time only, which busy processors may take.
void await_news(Monitor& monitor, int ranks) {
  ASSERT_TRUE(wait_until([&] {
    (void)monitor.find_stragglers();
    return std::ssize(monitor.known_activities()) == ranks;
  }));
}

TEST(FarActivities, ATimeoutQuotesALateRankOfAnotherHostOnAllRanks) {
  for (const Rank reporter : {0, 1, 2, 4}) {
    ConnectedCluster cluster({2, 2, 1});
    make_calls(cluster);
    await_news(cluster[reporter], cluster.ranks());
    EXPECT_FALSE(
        cluster[reporter].report(timeout_status(cluster[reporter], reporter, {reporter == 0 ? 1 : 0}, true)).is_ok());
    ASSERT_TRUE(cluster.all_fail(10000));
    const std::string text = cluster[0].status().message();
    EXPECT_THAT(text, ContainsRegex("not yet in this call: rank 3; rank 3 \\(host host1\\) is not in a call.*the last "
                                    "one: allreduce #5"));
    EXPECT_THAT(text, HasSubstr("ranks 0-2 and 4 are in allreduce #6"));
    for (Rank rank = 1; rank < 5; ++rank) EXPECT_EQ(cluster[rank].status().message(), text);
  }
}

TEST(FarActivities, AnErrorWithoutAPollQuotesThisHostAtLeast) {
  ConnectedCluster cluster({2, 2});
  make_calls(cluster);
  EXPECT_FALSE(cluster[0].report(error(Code::Aborted, "told to").with_peers({0})).is_ok());
  ASSERT_TRUE(cluster.all_fail(10000));
  EXPECT_THAT(cluster[3].status().message(), HasSubstr("ranks 0 and 1 (host host0) are in allreduce #6"));
}

TEST(FarActivities, ADepartureQuotesAllHosts) {
  ConnectedCluster cluster({2, 2});
  make_calls(cluster);
  EXPECT_TRUE(cluster[3].depart(0).is_ok());
  ASSERT_TRUE(wait_until([&] { return !cluster[0].look().is_ok(); }));
  ASSERT_TRUE(cluster.all_fail(10000));
  EXPECT_THAT(cluster[0].status().message(), HasSubstr("rank 3 (host host1) is gone after allreduce #5"));
  EXPECT_THAT(cluster[0].status().message(), HasSubstr("ranks 0-2 are in allreduce #6"));
}

TEST(FarActivities, AToolLearnsThemByAskingOneHost) {
  ConnectedCluster cluster({2, 2, 1});
  make_calls(cluster);
  const Board board = *Board::over(cluster.board(2), 1);
  EXPECT_TRUE(board.activities_elsewhere(5, monotonic_ns()).empty());
  EXPECT_TRUE(ask_all_hosts(cluster.board(2), monotonic_ns() + 2'000'000'000));
  std::vector<RankActivity> found;
  EXPECT_TRUE(wait_until([&] {
    found = board.activities_elsewhere(5, monotonic_ns());
    return found.size() == 4;
  }));
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[3].rank, 3);
  EXPECT_EQ(found[3].state, RankActivity::State::Outside);
  EXPECT_EQ(found[3].call.number, 5U);
  EXPECT_TRUE(wait_until([&] { return cluster[0].known_activities().size() == 5; })) << "all hosts learn it";
  EXPECT_TRUE(wait_until([&] { return board.activities_elsewhere(5, monotonic_ns()).empty(); })) << "until then";
  EXPECT_TRUE(ask_all_hosts(cluster.board(2), INT64_MAX));
  EXPECT_EQ(board.poll_wish(monotonic_ns()), PollWish::Nothing) << "that is too long";
}

TEST(FarActivities, MemoryThatIsNoBoardIsNotWritten) {
  alignas(64) std::byte memory[sizeof(BoardHeader)]{};
  EXPECT_FALSE(ask_all_hosts(memory, 1));
  EXPECT_FALSE(ask_all_hosts(Bytes(memory).first(64), 1));
}

}  // namespace
}  // namespace ccom
