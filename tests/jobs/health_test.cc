// SPDX-License-Identifier: Apache-2.0
//
// What is judged of values: late ranks and who is not to blame, stragglers, deadlocks; and the rates between two looks.
#include "tools/jobs/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/jobs/json.h"
#include "tools/jobs/rates.h"
#include "tools/jobs/report.h"

namespace ccom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using State = RankActivity::State;
using Verdict = Health::Verdict;

RankSeen rank_in(Rank rank, State state, uint64_t call, Rank waits_for = -1, double waited = 0) {
  RankSeen seen;
  seen.activity.rank = rank;
  seen.activity.pid = 100 + rank;
  seen.activity.state = state;
  seen.activity.call.number = call;
  seen.activity.waits_for = waits_for;
  seen.activity.waited = waited;
  return seen;
}

CommunicatorSeen communicator_of(uint64_t number, std::vector<RankSeen> seen) {
  CommunicatorSeen communicator;
  communicator.number = number;
  communicator.ranks = static_cast<int>(seen.size());
  communicator.hosts = 1;
  communicator.age = 100;
  communicator.seen = std::move(seen);
  return communicator;
}

HostSeen host_of(std::vector<CommunicatorSeen> communicators) {
  HostSeen host;
  host.at_ns = 1'000'000'000;
  host.communicators = std::move(communicators);
  return host;
}

TEST(Health, OfNothingIsSaidSo) { EXPECT_EQ(judge({}, 1).verdict, Verdict::Nothing); }

// Rank 1 was stopped while it waited for rank 0, which waits for it now.
TEST(Health, AStoppedRankIsTheCauseThoughItWaited) {
  HostSeen seen =
      host_of({communicator_of(1, {rank_in(0, State::InCall, 5, 1, 4), rank_in(1, State::InCall, 5, 0, 4)})});
  seen.communicators[0].seen[1].activity.silent = 4;
  const Health health = judge(seen, 1);
  ASSERT_THAT(health.late, SizeIs(1));
  EXPECT_EQ(health.late[0].rank, 1);
  EXPECT_THAT(health.late[0].waiting, ElementsAre(0));
}

// Ranks 0 and 1 wait for each other in one call at both ends of a link that sends all the time; then not.
TEST(Health, ABusyLinkIsNamedWhereRanksMadeOthersWait) {
  HostSeen seen =
      host_of({communicator_of(1, {rank_in(0, State::InCall, 5, 1, 60), rank_in(1, State::InCall, 5, 0, 60)})});
  LinkSeen link;
  link.pid = 100;
  link.ranks = {0};
  link.remote = "10.0.0.2";
  link.sent = 180'000'000;
  link.sending = 90;
  seen.links.push_back(link);
  const Health health = judge(seen, 1);
  EXPECT_EQ(health.verdict, Verdict::Healthy);
  ASSERT_THAT(health.busy_links, SizeIs(1));
  EXPECT_THAT(findings(seen, health),
              ::testing::Contains("the connection of rank 0 to 10.0.0.2 had data on its way for 90 % of the time, "
                                  "2.00 MB/s"));
  seen.links[0].sending = 20;
  EXPECT_THAT(judge(seen, 1).busy_links, IsEmpty());
  seen.links[0].sending = 90;
  seen.communicators[0].seen = {rank_in(0, State::InCall, 5), rank_in(1, State::InCall, 5)};
  EXPECT_THAT(judge(seen, 1).busy_links, IsEmpty());
}

TEST(Health, ShortWaitsAreNoMatter) {
  const HostSeen seen =
      host_of({communicator_of(1, {rank_in(0, State::InCall, 5, 1, 0.5), rank_in(1, State::Outside, 4)})});
  EXPECT_EQ(judge(seen, 1).verdict, Verdict::Healthy);
  EXPECT_EQ(judge(seen, 0.4).verdict, Verdict::Late);
}

// 0 waits for 1, which waits for 2, which is not there.
TEST(Health, BlamesTheRankThatHasNotComeNotThoseThatWaitForIt) {
  const HostSeen seen = host_of({communicator_of(
      1, {rank_in(0, State::InCall, 5, 1, 9), rank_in(1, State::InCall, 5, 2, 9), rank_in(2, State::Outside, 4)})});
  const Health health = judge(seen, 1);
  ASSERT_THAT(health.late, SizeIs(1));
  EXPECT_EQ(health.late[0].rank, 2);
  EXPECT_THAT(health.late[0].waiting, ElementsAre(0, 1));
}

// 0 is one call ahead of 1, which waits for 2.
TEST(Health, BlamesNoRankThatWaitsInAnEarlierCall) {
  const HostSeen seen = host_of({communicator_of(
      1, {rank_in(0, State::InCall, 6, 1, 9), rank_in(1, State::InCall, 5, 2, 9), rank_in(2, State::InCall, 5)})});
  const Health health = judge(seen, 1);
  ASSERT_THAT(health.late, SizeIs(1));
  EXPECT_EQ(health.late[0].rank, 2);
}

TEST(Health, NamesARankOfAnotherHost) {
  CommunicatorSeen communicator = communicator_of(1, {rank_in(0, State::InCall, 5, 7, 9)});
  communicator.ranks = 8;
  const Health health = judge(host_of({communicator}), 1);
  ASSERT_THAT(health.late, SizeIs(1));
  EXPECT_EQ(health.late[0].rank, 7);
  EXPECT_EQ(health.late[0].reason, "unknown, no answer");
}

TEST(Health, RanksOfOtherHostsAreJudgedAsThoseOfThisOne) {
  HostSeen seen = host_of({communicator_of(
      1, {rank_in(0, State::InCall, 5, 1, 9), rank_in(1, State::InCall, 5, 2, 9), rank_in(2, State::Outside, 4)})});
  seen.communicators[0].hosts = 2;
  for (const Rank rank : {1, 2}) {
    seen.communicators[0].seen[static_cast<size_t>(rank)].told_before = 0.2;
    seen.communicators[0].seen[static_cast<size_t>(rank)].host = "b";
  }
  const Health health = judge(seen, 1);
  ASSERT_THAT(health.late, SizeIs(1));
  EXPECT_EQ(health.late[0].rank, 2);
  EXPECT_THAT(health.late[0].waiting, ElementsAre(0, 1));
  const std::string text = to_text(seen, health);
  EXPECT_THAT(text, HasSubstr(": rank 2 (host b) is not in a call"));
  EXPECT_THAT(text, HasSubstr("3 ranks, 2 hosts, 1:40, other hosts as of 0.2 s ago: "));
}

TEST(Health, RanksThatAreNotSeenAreUnknown) {
  HostSeen seen = host_of({communicator_of(1, {rank_in(0, State::Outside, 5)})});
  seen.communicators[0].ranks = 4;
  seen.communicators[0].unknown = {1, 2, 3};
  EXPECT_EQ(judge(seen, 1).verdict, Verdict::Healthy);
  EXPECT_THAT(to_text(seen, judge(seen, 1)), HasSubstr("; ranks 1-3 are unknown, no answer"));
  EXPECT_EQ(nlohmann::json::parse(to_json(seen, judge(seen, 1), nullptr))["communicators"][0]["no_answer"],
            nlohmann::json({1, 2, 3}));
}

TEST(Health, AProcessThatDoesNotRunIsLate) {
  HostSeen seen = host_of({communicator_of(1, {rank_in(0, State::Outside, 5)})});
  seen.communicators[0].seen[0].activity.silent = 10;
  ASSERT_THAT(judge(seen, 1).late, SizeIs(1));
  EXPECT_THAT(judge(seen, 1).late[0].reason, HasSubstr("has not run for 10.0 s"));
  seen.communicators[0].seen[0].activity.state = State::Left;
  EXPECT_THAT(judge(seen, 1).late, IsEmpty());
}

TEST(Health, RanksAtBothEndsOfAMessageAreNotLateButThoseThatReceiveFromEachOtherWaitForEver) {
  HostSeen seen =
      host_of({communicator_of(1, {rank_in(0, State::Message, 5, 1, 9), rank_in(1, State::Message, 5, 0, 9)})});
  RankActivity &first = seen.communicators[0].seen[0].activity, &second = seen.communicators[0].seen[1].activity;
  first.message = "send to rank 1 (tag 7, 1024 bytes)";
  second.message = "receive from rank 0 (tag 7, 1024 bytes)";
  EXPECT_EQ(judge(seen, 1).verdict, Health::Verdict::Healthy);
  first.message = "receive from rank 1 (tag 7, 1024 bytes)";
  EXPECT_EQ(judge(seen, 1).cycles.size(), 1U);
  second.state = State::Outside;
  const Health health = judge(seen, 1);
  ASSERT_EQ(health.late.size(), 1U);
  EXPECT_EQ(health.late[0].rank, 1);
  EXPECT_EQ(health.late[0].waiting, std::vector<Rank>{0});
}

TEST(Health, DeadRanksAndErrorsAreFailures) {
  HostSeen seen = host_of({communicator_of(1, {rank_in(0, State::Dead, 5), rank_in(1, State::Outside, 5)})});
  EXPECT_EQ(judge(seen, 1).verdict, Verdict::Failed);
  seen.communicators[0].seen[0].activity.state = State::Outside;
  EXPECT_EQ(judge(seen, 1).verdict, Verdict::Healthy);
  seen.communicators[0].error = "rank 3 has died";
  EXPECT_EQ(judge(seen, 1).verdict, Verdict::Failed);
}

TEST(Health, TheShareOfAStragglerIsThatOfTheRankThatWaitedLongest) {
  HostSeen seen = host_of({communicator_of(
      1, {rank_in(0, State::Outside, 5), rank_in(1, State::Outside, 5), rank_in(2, State::Outside, 5)})});
  seen.communicators[0].seen[0].totals.waited_for = {{2, 35, 5}, {1, 1, 0}};
  seen.communicators[0].seen[1].totals.waited_for = {{2, 10, 0}};
  const Health health = judge(seen, 1);
  ASSERT_THAT(health.stragglers, SizeIs(1));
  EXPECT_EQ(health.stragglers[0].rank, 2);
  EXPECT_DOUBLE_EQ(health.stragglers[0].share, 0.3);  // of 100 s; 5 s may have been for others
  EXPECT_FALSE(health.stragglers[0].passed_on);
}

// 0 waits for 1 as long as 1 waits for 2. A wait that lasts counts.
TEST(Health, AStragglerThatHasWaitedItselfComesLast) {
  HostSeen seen = host_of({communicator_of(
      1, {rank_in(0, State::InCall, 5, 1, 60), rank_in(1, State::InCall, 5, 2, 50), rank_in(2, State::Outside, 4)})});
  const Health health = judge(seen, 1);
  ASSERT_THAT(health.stragglers, SizeIs(2));
  EXPECT_EQ(health.stragglers[0].rank, 2);
  EXPECT_DOUBLE_EQ(health.stragglers[0].share, 0.5);
  EXPECT_EQ(health.stragglers[1].rank, 1);
  EXPECT_TRUE(health.stragglers[1].passed_on);
  EXPECT_THAT(findings(seen, health).back(), HasSubstr("60 % of the time; it may have passed on"));
  seen.communicators[0].seen[1].told_before = seen.communicators[0].seen[2].told_before = 0.1;
  const Health told = judge(seen, 1);
  ASSERT_THAT(told.stragglers, SizeIs(2)) << "the same of ranks of other hosts";
  EXPECT_EQ(told.stragglers[0].rank, 2);
  EXPECT_TRUE(told.stragglers[1].passed_on);
  EXPECT_THAT(findings(seen, told)[1], HasSubstr("rank 2 made the others wait 50 % of the time; whether it waited"));
}

TEST(Health, FindsProcessesThatWaitForOneAnotherInTwoCommunicators) {
  const HostSeen seen =
      host_of({communicator_of(1, {rank_in(0, State::InCall, 3, 1, 9), rank_in(1, State::Outside, 2)}),
               communicator_of(2, {rank_in(0, State::Outside, 2), rank_in(1, State::InCall, 3, 0, 9)})});
  const Health health = judge(seen, 1);
  ASSERT_THAT(health.cycles, SizeIs(1));
  EXPECT_THAT(health.cycles[0], ElementsAre(Health::Place{1, 0}, Health::Place{2, 1}));
  EXPECT_THAT(findings(seen, health)[0], HasSubstr("deadlock: rank 0 of communicator 000000"));
}

TEST(Health, ProcessesOfTwoHostsWithOneNumberAreTwo) {
  HostSeen seen = host_of({communicator_of(1, {rank_in(0, State::InCall, 3, 1, 9), rank_in(1, State::Outside, 2)}),
                           communicator_of(2, {rank_in(0, State::Outside, 2), rank_in(1, State::InCall, 3, 0, 9)})});
  for (CommunicatorSeen& communicator : seen.communicators)
    for (RankSeen& rank : communicator.seen) rank.activity.pid = 1;
  EXPECT_THAT(judge(seen, 1).cycles, IsEmpty());
  for (CommunicatorSeen& communicator : seen.communicators) {
    communicator.seen[1].told_before = 0.1;
    communicator.seen[1].host = "b";
  }
  EXPECT_THAT(judge(seen, 1).cycles, SizeIs(1));
}

// Over a slow link both ends wait for each other's data.
TEST(Health, RanksThatWaitForEachOtherInOneCallAreNoDeadlock) {
  const HostSeen seen =
      host_of({communicator_of(1, {rank_in(0, State::InCall, 3, 1, 9), rank_in(1, State::InCall, 3, 0, 9)})});
  EXPECT_THAT(judge(seen, 1).cycles, IsEmpty());
  EXPECT_THAT(judge(seen, 1).late, IsEmpty());
}

TEST(Health, SurvivesNumbersThatMeanNothing) {
  HostSeen seen = host_of({communicator_of(1, {rank_in(0, State::InCall, UINT64_MAX, 1 << 30, 1e300)})});
  seen.communicators[0].seen[0].activity.call.kind = UINT64_MAX;
  seen.communicators[0].seen[0].totals.waited_for = {{-5, 1e300, 0}, {1 << 30, 1, 0}};
  seen.communicators[0].name = "\xff\xfe\"";
  const Health health = judge(seen, 1);
  EXPECT_FALSE(nlohmann::json::parse(to_json(seen, health, nullptr)).empty());
  EXPECT_FALSE(to_text(seen, health).empty());
}

TEST(Rates, AreDifferencesPerSecond) {
  HostSeen before = host_of({communicator_of(1, {rank_in(0, State::Outside, 5), rank_in(1, State::Outside, 5)})});
  before.communicators[0].seen[0].totals.calls = {{Collective::AllReduce, 0, 10, 80, 1.0, true, 0.25}};
  HostSeen now = before;
  now.at_ns += 2'000'000'000;
  now.communicators[0].seen[0].totals.calls = {{Collective::AllReduce, 0, 30, 240, 2.0, true, 0.75}};
  const Rates rates(before, now);
  const Rate rank = rates.of(1, 0).value();
  EXPECT_DOUBLE_EQ(rank.calls, 10);
  EXPECT_DOUBLE_EQ(rank.bytes, 80);
  EXPECT_DOUBLE_EQ(rank.in_calls, 0.5);
  EXPECT_DOUBLE_EQ(rank.waited, 0.25);
  EXPECT_DOUBLE_EQ(rates.of(now.communicators[0])->calls, 5);  // the mean
  EXPECT_FALSE(rates.of(2, 0).has_value());
}

TEST(Rates, OfRanksOfOtherHostsAreUnknown) {
  HostSeen before = host_of({communicator_of(1, {rank_in(0, State::Outside, 5), rank_in(1, State::Outside, 5)})});
  before.communicators[0].seen[1].told_before = 0.1;
  HostSeen now = before;
  now.at_ns += 1'000'000'000;
  now.communicators[0].seen[0].totals.calls = {{Collective::AllReduce, 0, 10, 80, 1.0, true, 0.25}};
  EXPECT_FALSE(Rates(before, now).of(1, 1).has_value());
  EXPECT_DOUBLE_EQ(Rates(before, now).of(now.communicators[0])->calls, 10);
}

TEST(Rates, OfACounterThatBeganAnewAreNotNegative) {
  HostSeen before = host_of({communicator_of(1, {rank_in(0, State::Outside, 5)})});
  before.communicators[0].seen[0].totals.calls = {{Collective::AllReduce, 0, 10, 80, 1.0, true, 0}};
  HostSeen now = before;
  now.at_ns += 1'000'000'000;
  now.communicators[0].seen[0].totals.calls.clear();
  EXPECT_DOUBLE_EQ(Rates(before, now).of(1, 0)->calls, 0);
}

}  // namespace
}  // namespace ccom
