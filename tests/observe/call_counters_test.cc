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
    CallCounters::count(counters->cell_of(Collective::AllReduce, 8), 8);
    if (call % 16 == 0) counters->count_time(Collective::AllReduce, 8, 1000);
  }
  CallCounters::count(counters->cell_of(Collective::Broadcast, 1 << 20), 1 << 20);
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
  counters->count_wait({Collective::Barrier, 0, 10, 5});
  counters->count_wait({Collective::Barrier, 0, 30, 2});
  counters->count_wait({Collective::Barrier, 0, 25, 5});
  counters->count_wait({Collective::Barrier, 0, 7, -1});  // for nobody that is known
  const CallTotals totals = totals_of(*counters);
  ASSERT_EQ(totals.waited_for.size(), 2U);
  EXPECT_EQ(totals.waited_for[0].rank, 5);
  EXPECT_NEAR(totals.waited_for[0].seconds, 35e-9, 1e-15);
  EXPECT_EQ(totals.waited_for[1].rank, 2);
  ASSERT_EQ(totals.calls.size(), 1U);
  EXPECT_NEAR(totals.calls[0].waited_seconds, 72e-9, 1e-15);
}

// Whatever the order, the place with more than half of the time is the one that is left.
TEST(CallCounters, SayWhereMostWasWaited) {
  std::mt19937_64 random(11);
  for (int run = 0; run < 200; ++run) {
    const auto counters = std::make_unique<CallCounters>();
    std::vector<CallCounters::Wait> waits;
    uint64_t there = 0, elsewhere = 0;
    for (uint64_t call = 1; call <= 50; ++call) {
      const uint32_t site = random() % 3 == 0 ? 7 : 10 + static_cast<uint32_t>(random() % 5);
      const uint64_t ns = site == 7 ? 2000 + random() % 2000 : random() % 800;
      (site == 7 ? there : elsewhere) += ns;
      waits.push_back({Collective::Broadcast, 8, ns, 3, call, site});
    }
    for (const CallCounters::Wait& wait : waits) counters->count_wait(wait);
    const CallTotals::WaitedFor of = totals_of(*counters).waited_for.at(0);
    EXPECT_EQ(of.waits, 50U);
    if (there <= elsewhere) continue;
    EXPECT_EQ(of.site, 7U) << run;
    EXPECT_EQ(of.collective, Collective::Broadcast);
    EXPECT_LE(of.place_seconds, static_cast<double>(there) * 1e-9 + 1e-12);
    EXPECT_GE(of.place_seconds, static_cast<double>(there - elsewhere) * 1e-9 - 1e-12);
    ASSERT_GE(of.longest_call, 1U);
    EXPECT_EQ(waits[of.longest_call - 1].site, 7U);
    EXPECT_NEAR(of.longest_seconds, static_cast<double>(waits[of.longest_call - 1].ns) * 1e-9, 1e-12);
  }
}

// A rank that takes the place of another one begins with waits of its own.
TEST(CallCounters, ForgetTheWaitsOfARankThatMadeRoom) {
  const auto counters = std::make_unique<CallCounters>();
  for (Rank rank = 0; rank < static_cast<Rank>(CallCounters::kPeers); ++rank)
    counters->count_wait({Collective::AllReduce, 8, 1000 + static_cast<uint64_t>(rank), rank, 1, 5});
  counters->count_wait({Collective::Barrier, 0, 100, 99, CallCounters::kNoNumber, 6});
  const CallTotals totals = totals_of(*counters);
  const auto found = std::ranges::find(totals.waited_for, 99, &CallTotals::WaitedFor::rank);
  ASSERT_NE(found, totals.waited_for.end());
  EXPECT_EQ(found->waits, 1U);
  EXPECT_EQ(found->site, 6U);
  EXPECT_NEAR(found->place_seconds, 100e-9, 1e-15);
  EXPECT_NEAR(found->seconds, 1100e-9, 1e-15);
  EXPECT_EQ(found->longest_call, 0U);
}

TEST(CallCounters, KnowThePlaceOfAWaitThatTookNoTime) {
  const auto counters = std::make_unique<CallCounters>();
  for (Rank rank = 0; rank <= static_cast<Rank>(CallCounters::kPeers); ++rank)
    counters->count_wait({Collective::Barrier, 0, 0, rank, 1, 5});
  for (const CallTotals::WaitedFor& of : totals_of(*counters).waited_for) {
    EXPECT_EQ(of.collective, Collective::Barrier) << of.rank;
    EXPECT_EQ(of.site, 5U) << of.rank;
  }
  counters->peers[0].place = UINT64_MAX;  // as a process that has gone wrong might leave it
  EXPECT_EQ(totals_of(*counters).waited_for.size(), CallCounters::kPeers);
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
    counters->count_wait({Collective::AllReduce, 8, ns, rank});
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
