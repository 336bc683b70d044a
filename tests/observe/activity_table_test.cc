// SPDX-License-Identifier: Apache-2.0
//
// Tables of what ranks do: the order of merging does not matter, they stay within their bounds, and damaged ones are
// refused.
#include "observe/activity_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ccom {
namespace {

using State = RankActivity::State;

constexpr int64_t kNow = 1'000'000'000'000;

RankActivity activity(Rank rank, uint64_t number, std::string site = "train.py:220 (step)") {
  return {.rank = rank,
          .state = State::InCall,
          .call = {number, 1000, 0},
          .algorithm = "ring",
          .site = std::move(site),
          .seconds = 2.5,
          .waits_for = 3,
          .waited = 1.5,
          .silent = 0.25,
          .pid = 100 + rank};
}

TEST(ActivityTable, GivesBackWhatFewRanksDo) {
  std::vector<RankActivity> all;
  for (Rank rank = 0; rank < kMostSeparate; ++rank) all.push_back(activity(rank, 100 - static_cast<uint64_t>(rank)));
  all[5].state = State::Outside;
  all[5].waits_for = -1;
  all[5].waited = 0;
  all[5].place = "train.py:214 (evaluate)";
  all[6].seconds = all[6].silent = -1;
  all[7].host = "node-7";
  all[8].state = State::Message;
  all[8].message = "receive from rank 3 (tag 7, 1024 bytes)";
  all[8].messages = 4;
  const auto table = decode_table(encode_table(table_of(all, kNow), kNow), kNow);
  ASSERT_TRUE(table);
  EXPECT_EQ(activities_in(*table, kNow, 1000), all);
  EXPECT_EQ(activities_in(*table, kNow, 10).size(), 10U) << "there are no more ranks";
}

TEST(ActivityTable, NamesTheHostOfAGroupIfItIsOne) {
  std::vector<RankActivity> all;
  for (Rank rank = 0; rank < 2 * kMostSeparate; ++rank) {
    all.push_back(activity(rank, rank < kMostSeparate ? 6 : 7));
    all.back().host = rank < kMostSeparate || rank % 2 == 0 ? std::string(100, 'a') : "b";
  }
  const ActivityTable table = table_of(all, kNow);
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table[0].host, std::string(kMostTableHost, 'a'));
  EXPECT_EQ(table[1].host, "");
}

TEST(ActivityTable, ThatTellsOfMoreRanksThanThereAreTellsNothing) {
  ActivityTable table = table_of({activity(1, 7), activity(2, 8)}, kNow);
  EXPECT_EQ(activities_in(table, kNow, 3).size(), 2U);
  for (ActivityGroup& group : table) group.ranks = {{0, INT32_MAX - 1}};
  EXPECT_TRUE(activities_in(table, kNow, 3).empty());
}

TEST(ActivityTable, TimesGoOnAndClocksMayDiffer) {
  const std::vector<std::byte> bytes = encode_table(table_of({activity(1, 7)}, kNow), kNow + 1'000'000'000);
  const auto found = activities_in(*decode_table(bytes, 50), 1'000'000'050, 2);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].seconds, 4.5);
  EXPECT_EQ(found[0].waited, 3.5);
  EXPECT_FALSE(is_silent(found[0])) << "its process ran when it was read";
  RankActivity stopped = activity(1, 7);
  stopped.silent = 1.75;
  const std::vector<std::byte> of_stopped = encode_table(table_of({stopped}, kNow), kNow + 1'000'000'000);
  EXPECT_NEAR(activities_in(*decode_table(of_stopped, 50), 1'000'000'050, 2).at(0).silent, 3.75, 1e-6);
}

TEST(ActivityTable, OfManyRanksThoseThatDoTheSameAreOneGroupWithTheLongestTime) {
  std::vector<RankActivity> all;
  for (Rank rank = 0; rank < 1000; ++rank) all.push_back(activity(rank, rank == 700 ? 6 : 7));
  all[3].seconds = 60;
  const ActivityTable table = table_of(all, kNow);
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table[0].ranks, (std::vector<RankRange>{{700, 700}})) << "who is behind comes first";
  EXPECT_EQ(table[1].ranks, (std::vector<RankRange>{{0, 699}, {701, 999}}));
  const auto found = activities_in(table, kNow, 1000);
  ASSERT_EQ(found.size(), 1000U);
  EXPECT_NEAR(found[999].seconds, 60, 1e-6);
}

TEST(ActivityTable, ASilentRankIsInNoGroupWithOthers) {
  std::vector<RankActivity> all;
  for (Rank rank = 0; rank < 100; ++rank) all.push_back(activity(rank, 7));
  all[8].silent = 5;
  EXPECT_EQ(table_of(all, kNow).size(), 2U);
}

TEST(ActivityTable, TheOrderOfMergingDoesNotMatter) {
  std::mt19937 random(1);
  for (const int hosts : {2, 9, 40}) {
    std::vector<ActivityTable> tables;
    for (int host = 0; host < hosts; ++host) {
      std::vector<RankActivity> ranks;
      for (Rank rank = 8 * host; rank < 8 * host + 8; ++rank) {
        ranks.push_back(activity(rank, 1 + random() % 3, "line " + std::to_string(random() % 3)));
        ranks.back().seconds = static_cast<double>(random() % 100);
      }
      tables.push_back(table_of(ranks, kNow));
    }
    const auto merge_all = [&] {
      ActivityTable all;
      for (const ActivityTable& table : tables) all = merge(std::move(all), table);
      return all;
    };
    const ActivityTable all = merge_all();
    for (int round = 0; round < 20; ++round) {
      std::ranges::shuffle(tables, random);
      EXPECT_EQ(merge_all(), all) << hosts;
      ActivityTable first, second;
      for (size_t i = 0; i < tables.size(); ++i)
        (i % 2 == 0 ? first : second) = merge(i % 2 == 0 ? first : second, tables[i]);
      EXPECT_EQ(merge(first, second), all) << hosts;
    }
  }
}

TEST(ActivityTable, StaysBelowItsBoundAndKeepsWhoIsBehind) {
  std::vector<RankActivity> all;
  for (Rank rank = 0; rank < 5000; ++rank)
    all.push_back(activity(rank, 10 + static_cast<uint64_t>(rank), std::string(300, 'x') + std::to_string(rank)));
  for (Rank rank = 0; rank < 5000; rank += 2) all[static_cast<size_t>(rank)].call.number = 5;
  const std::vector<std::byte> bytes = encode_table(table_of(all, kNow), kNow);
  EXPECT_LE(bytes.size(), kMostTableBytes);
  const auto table = decode_table(bytes, kNow);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->front().call.number, 5U);
  EXPECT_EQ(table->front().ranks.size(), kMostRankRanges);
  EXPECT_EQ(table->front().site.size(), kMostTableText);
}

TEST(ActivityTable, IsRefusedDamaged) {
  const std::vector<std::byte> bytes =
      encode_table(table_of({activity(1, 7), activity(2, 8, "other.py:1")}, kNow), kNow);
  ASSERT_TRUE(decode_table(bytes, kNow));
  for (size_t size = 1; size < bytes.size(); ++size) {
    const auto cut = decode_table(ConstBytes(bytes).first(size), kNow);
    EXPECT_TRUE(!cut || cut->size() < 2) << size;
  }
  std::mt19937 random(2);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> damaged = bytes;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    const auto table = decode_table(damaged, kNow);
    if (table) {
      ASSERT_EQ(encode_table(*table, kNow), damaged);
      for (const RankActivity& each : activities_in(*table, kNow, 4)) ASSERT_TRUE(each.rank >= 0 && each.rank < 4);
    }
  }
  EXPECT_FALSE(decode_table(std::vector<std::byte>(kMostTableBytes + 1), kNow));
}

TEST(ActivityTable, TextsThatWouldDisturbATerminalBecomeSpaces) {
  const ActivityTable table = table_of({activity(0, 1, "a\nb\x1b[2J")}, kNow);
  EXPECT_EQ(table[0].site, "a b [2J");
  ActivityTable hostile = table;
  hostile[0].site = "a\nb";
  EXPECT_FALSE(decode_table(encode_table(hostile, kNow), kNow));
}

}  // namespace
}  // namespace ccom
