// SPDX-License-Identifier: Apache-2.0
//
// What the words and the JSON of a report say of given waits, and that the fixed form loses nothing but what it says.
#include "observe/straggler_report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "observe/activity_writer.h"

namespace ccom {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

RankWaits::For waited_for(Rank rank, double seconds) {
  return {rank, seconds, 40, Collective::AllReduce, "train.py:88 (step)", 0.9 * seconds, 12, seconds / 4, 17};
}

// 10 s; `late` made each of the others wait for 2 s of 4 s in calls.
std::vector<RankWaits> ranks_behind(Rank late, int nranks) {
  std::vector<RankWaits> ranks;
  for (Rank rank = nranks - 1; rank >= 0; --rank) {
    RankWaits of{rank, 10, 4, false, rank == late ? 0.001 : 2.001, {}};
    if (rank != late) of.waited_for = {waited_for(late, 2), waited_for((rank + 1) % nranks, 0.001)};
    ranks.push_back(of);
  }
  return ranks;
}

TEST(StragglerReport, SaysWhoHowMuchAndWhere) {
  const std::string text = text_of(report_waits(ranks_behind(3, 4), 4));
  EXPECT_EQ(text,
            "waits since the communicator started 10 s ago:\n"
            "rank 3 made the others wait 20 % of the time (2 s, 50 % of their time in calls), as 3 of 3 say; 90 % of "
            "that before allreduce at train.py:88 (step), in 12 of 40 waits, the longest for 0.5 s before #17");
}

TEST(StragglerReport, SaysThatThereIsNone) {
  std::vector<RankWaits> ranks = ranks_behind(3, 4);
  for (RankWaits& of : ranks)
    for (RankWaits::For& wait : of.waited_for) wait.seconds = 0.09;
  EXPECT_THAT(text_of(report_waits(ranks, 4)),
              HasSubstr("\nno rank made the others wait for more than 1 % of the time"));
  EXPECT_THAT(text_of(report_waits({}, 4)), HasSubstr("without what 4 of 4 ranks say"));
}

TEST(StragglerReport, SaysWhatIsNotKnown) {
  std::vector<RankWaits> ranks = ranks_behind(1, 3);
  ranks[0].is_sampled = true;
  ranks[0].waited_for[0].site = "";
  ranks[0].waited_for[0].seconds = 3;
  ranks[0].waited_for[0].place_seconds = 1;  // a third of it: nowhere in particular
  const std::string text = text_of(report_waits(ranks, 8));
  EXPECT_THAT(text, HasSubstr("without what 5 of 8 ranks say"));
  EXPECT_THAT(text, HasSubstr("as 2 of 2 say"));
  EXPECT_THAT(text, Not(HasSubstr("before")));
  EXPECT_THAT(text, HasSubstr("taken from one in 64"));
}

// A ring: each waits for its neighbour, and all of that is rank 0's.
TEST(StragglerReport, PutsThoseLastThatMayHavePassedItOn) {
  std::vector<RankWaits> ranks;
  for (Rank rank = 0; rank < 4; ++rank) {
    RankWaits of{rank, 10, 4, false, rank == 0 ? 0.01 : 2, {}};
    if (rank > 0) of.waited_for = {waited_for(rank - 1, 2 + 0.1 * rank)};
    ranks.push_back(of);
  }
  const WaitReport report = report_waits(ranks, 4);
  ASSERT_EQ(report.stragglers.size(), 3U);
  EXPECT_EQ(report.stragglers[0].rank, 0);
  EXPECT_FALSE(report.stragglers[0].passed_on);
  EXPECT_TRUE(report.stragglers[1].passed_on);
  EXPECT_THAT(text_of(report), HasSubstr("it may have passed on what others did"));
}

TEST(StragglerReport, NamesEightInWords) {
  std::vector<RankWaits> ranks;
  for (Rank rank = 0; rank < 20; ++rank) ranks.push_back({rank, 10, 4, false, 0.2, {waited_for(19 - rank, 1)}});
  const std::string text = text_of(report_waits(ranks, 20));
  EXPECT_EQ(std::ranges::count(text, '\n'), 9);
  EXPECT_THAT(text, HasSubstr("and 12 more ranks for 1 % or longer"));
}

TEST(StragglerReport, IsTheSameAsJson) {
  const json object = json::parse(json_of(report_waits(ranks_behind(3, 4), 4)), nullptr, false);
  ASSERT_TRUE(object.is_object());
  EXPECT_EQ(object["nranks"], 4);
  EXPECT_EQ(object["known_ranks"], 4);
  ASSERT_EQ(object["stragglers"].size(), 1U);
  const json& straggler = object["stragglers"][0];
  EXPECT_EQ(straggler["rank"], 3);
  EXPECT_DOUBLE_EQ(straggler["share"], 0.2);
  EXPECT_EQ(straggler["seen_by"], 3);
  EXPECT_EQ(straggler["place"]["site"], "train.py:88 (step)");
  EXPECT_EQ(straggler["place"]["longest_call"], 17);
  EXPECT_DOUBLE_EQ(object["ranks"][3]["made_wait_seconds"], 2);
  EXPECT_DOUBLE_EQ(object["ranks"][0]["waited_seconds"], 2.001);
}

// What ccom.h says of the room for it, with sites that grow sixfold as JSON.
TEST(StragglerReport, FitsIntoThePromisedRoom) {
  for (const int nranks : {2, 9, 300}) {
    std::vector<RankWaits> ranks;
    for (Rank rank = 0; rank < nranks; ++rank) {
      RankWaits of{rank, 1e5 / 3, 1e4 / 3, true, 1e3 / 7, {}};
      of.waited_for = {waited_for((rank + 1) % nranks, 1e4 / 7)};
      of.waited_for[0].site = std::string(WaitsOnWire::kSiteBytes, '\x01');
      ranks.push_back(of);
    }
    const WaitReport report = report_waits(ranks, nranks);
    EXPECT_LT(json_of(report).size(), 16384U + 256U * static_cast<size_t>(nranks));
    EXPECT_LT(text_of(report).size(), 16384U);
  }
}

TEST(RankWaits, SurviveTheWayToOtherRanks) {
  for (RankWaits of : ranks_behind(3, 4)) {
    of.is_sampled = of.rank == 1;
    EXPECT_EQ(from_wire(to_wire(of)), of) << of.rank;
  }
  RankWaits many{5, 1, 1, false, 1, {}};
  for (Rank rank = 0; rank < 12; ++rank) many.waited_for.push_back(waited_for(rank, 20 - rank));
  many.waited_for[0].site = std::string(300, 'x');
  const RankWaits told = from_wire(to_wire(many));
  ASSERT_EQ(told.waited_for.size(), WaitsOnWire::kMost);
  EXPECT_EQ(told.waited_for[0].site.size(), WaitsOnWire::kSiteBytes);
  WaitsOnWire strange = to_wire(many);
  strange.waited_for[0].collective = 1000;
  EXPECT_EQ(from_wire(strange).waited_for[0].collective, Collective::AllReduce);
}

// The writer's waits with the place of most of them.
TEST(RankWaits, AreReadFromARecord) {
  const auto record = std::make_unique<ActivityRecord>();
  ActivityWriter writer(*record);
  const auto wait = [&](uint64_t number, const char* site, Rank peer, std::chrono::milliseconds time) {
    set_call_site(site);
    const uint64_t kind = kind_of(Collective::AllReduce, DataType::Float32, ReduceOp::Sum, false, -1);
    writer.begin({number, 1, kind}, call_site(nullptr), 4);
    writer.begin_wait(peer, Clock::now() - time);
    writer.end_wait();
    writer.end();
  };
  using std::chrono::milliseconds;
  wait(1, "a.py:1", 3, milliseconds(1000));
  wait(2, "b.py:2", 3, milliseconds(1500));
  wait(3, "b.py:2", 3, milliseconds(4000));
  wait(4, "b.py:2", 3, milliseconds(2000));
  wait(5, "a.py:1", 2, milliseconds(100));
  set_call_site("");
  const RankWaits waits = read_waits(*record, 1, 20, false);
  EXPECT_EQ(waits.rank, 1);
  EXPECT_NEAR(waits.waited, 8.6, 0.5);
  ASSERT_EQ(waits.waited_for.size(), 2U);
  const RankWaits::For& most = waits.waited_for[0];
  EXPECT_EQ(most.rank, 3);
  EXPECT_EQ(most.waits, 4U);
  EXPECT_EQ(most.site, "b.py:2");
  EXPECT_EQ(most.place_waits, 3U);
  EXPECT_NEAR(most.place_seconds, 7.5, 0.5);
  EXPECT_EQ(most.longest_call, 3U);
  EXPECT_NEAR(most.longest_seconds, 4, 0.3);
}

}  // namespace
}  // namespace ccom
