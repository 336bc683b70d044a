// SPDX-License-Identifier: Apache-2.0
#include "observe/call_counters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

namespace ccom {
namespace {

TEST(CallCounters, KnowSixSizes) {
  const std::vector<std::pair<uint64_t, size_t>> sizes = {
      {0, 0},     {1, 0},      {64, 0},     {65, 1},      {1024, 1},    {1025, 2},      {16384, 2},
      {16385, 3}, {262144, 3}, {262145, 4}, {4194304, 4}, {4194305, 5}, {UINT64_MAX, 5}};
  for (const auto& [bytes, expected] : sizes) EXPECT_EQ(size_class(bytes), expected) << bytes;
}

TEST(CallCounters, CountEveryCallAndScaleTheTimed) {
  const auto counters = std::make_unique<CallCounters>();
  for (int call = 0; call < 160; ++call) {
    counters->count(Collective::AllReduce, 8);
    if (call % 16 == 0) counters->count_time(Collective::AllReduce, 8, 1000);
  }
  counters->count(Collective::Broadcast, 1 << 20);
  counters->count_time(Collective::Broadcast, 1 << 20, 5000);
  const CallTotals totals = totals_of(*counters);
  ASSERT_EQ(totals.calls.size(), 2U);
  EXPECT_EQ(totals.calls[0].calls, 160U);
  EXPECT_EQ(totals.calls[0].bytes, 1280U);
  EXPECT_FALSE(totals.calls[0].is_exact);
  EXPECT_NEAR(totals.calls[0].seconds, 160e-6, 1e-12);
  EXPECT_EQ(totals.calls[1].collective, Collective::Broadcast);
  EXPECT_EQ(totals.calls[1].size_class, 4U);
  EXPECT_TRUE(totals.calls[1].is_exact);
  EXPECT_NEAR(totals.calls[1].seconds, 5e-6, 1e-12);
}

TEST(CallCounters, NameWhomOneWaitedForLongest) {
  const auto counters = std::make_unique<CallCounters>();
  counters->count_wait(Collective::Barrier, 0, 10, 5);
  counters->count_wait(Collective::Barrier, 0, 30, 2);
  counters->count_wait(Collective::Barrier, 0, 25, 5);
  counters->count_wait(Collective::Barrier, 0, 7, -1);  // for nobody that is known
  const CallTotals totals = totals_of(*counters);
  ASSERT_EQ(totals.waited_for.size(), 2U);
  EXPECT_EQ(totals.waited_for[0].rank, 5);
  EXPECT_NEAR(totals.waited_for[0].seconds, 35e-9, 1e-15);
  EXPECT_EQ(totals.waited_for[1].rank, 2);
  ASSERT_EQ(totals.calls.size(), 1U);
  EXPECT_NEAR(totals.calls[0].waited_seconds, 72e-9, 1e-15);
}

// Of 200 ranks: whoever has a sixteenth of the time is in the table, and no bound is wrong.
TEST(CallCounters, LoseNoStragglerAmongManyRanks) {
  const auto counters = std::make_unique<CallCounters>();
  std::mt19937_64 random(7);
  std::map<Rank, uint64_t> waited;
  uint64_t all = 0;
  for (int i = 0; i < 20000; ++i) {
    const Rank rank = random() % 5 == 0 ? 150 : static_cast<Rank>(random() % 200);
    const uint64_t ns = random() % 1000;
    counters->count_wait(Collective::AllReduce, 8, ns, rank);
    waited[rank] += ns;
    all += ns;
  }
  const CallTotals totals = totals_of(*counters);
  EXPECT_EQ(totals.waited_for.size(), CallCounters::kPeers);
  EXPECT_EQ(totals.waited_for[0].rank, 150);
  for (const CallTotals::WaitedFor& of : totals.waited_for) {
    const double truth = static_cast<double>(waited[of.rank]) * 1e-9;
    EXPECT_GE(of.seconds, truth - 1e-12) << of.rank;
    EXPECT_LE(of.seconds - of.too_many_seconds, truth + 1e-12) << of.rank;
  }
  EXPECT_GT(all, 0U);
}

}  // namespace
}  // namespace ccom
