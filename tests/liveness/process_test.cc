// SPDX-License-Identifier: Apache-2.0
//
// Deaths of real processes: kill -9 and SIGSTOP of ranks on one host and on several (hosts are processes that share no
// board and talk over loopback). Shows that every survivor names the same dead rank, how fast, and that leaving and
// short pauses are no deaths. Times are printed; what is asserted is generous, for the machine may be busy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/status.h"
#include "tests/liveness/crew.h"

namespace ccom {
namespace {

using test::Crew;
using test::CrewOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kGenerousMs = 2000;

std::vector<int> everybody_but(const Crew& crew, const std::vector<int>& victims) {
  std::vector<int> ranks;
  for (int r = 0; r < crew.ranks(); ++r)
    if (std::ranges::find(victims, r) == victims.end()) ranks.push_back(r);
  return ranks;
}

// Milliseconds from `start_ns` until each of `ranks` knew.
std::vector<double> delays(Crew& crew, const std::vector<int>& ranks, int64_t start_ns) {
  std::vector<double> values;
  for (int r : ranks)
    values.push_back(static_cast<double>(crew.stage().workers[r].failed_at_ns.load() - start_ns) * 1e-6);
  return values;
}

void print(const char* what, std::vector<double> delays_ms) {
  std::ranges::sort(delays_ms);
  std::printf("%s: p50 %.2f ms, max %.2f ms (%zu observations)\n", what, delays_ms[delays_ms.size() / 2],
              delays_ms.back(), delays_ms.size());
}

// Kills `victim` and checks that all others name it, and alike.
std::vector<double> kill_and_check(const CrewOptions& options, int victim) {
  Crew crew(options);
  EXPECT_TRUE(crew.ready());
  const auto survivors = everybody_but(crew, {victim});
  const int64_t start_ns = test::monotonic_ns();
  crew.signal(victim, SIGKILL);
  EXPECT_TRUE(crew.wait_for_errors(survivors, kGenerousMs));
  for (int r : survivors) {
    EXPECT_THAT(crew.peers_of(r), ElementsAre(victim)) << "rank " << r << ": " << crew.text_of(r);
    EXPECT_EQ(crew.stage().workers[r].code, static_cast<int>(Code::RemoteError));
    EXPECT_STREQ(crew.stage().workers[r].host, crew.stage().workers[survivors[0]].host);
    EXPECT_THAT(crew.text_of(r), HasSubstr("rank " + std::to_string(victim) + " on host"));
  }
  const auto times = delays(crew, survivors, start_ns);
  EXPECT_EQ(crew.finish(), 0);
  return times;
}

void kill_each(const char* what, const CrewOptions& options, const std::vector<int>& victims, int rounds) {
  std::vector<double> all;
  for (int i = 0; i < rounds; ++i)
    for (int victim : victims)
      for (double time : kill_and_check(options, victim)) all.push_back(time);
  print(what, all);
}

TEST(OneHost, EverySurvivorNamesAKilledRank) { kill_each("one of 4 killed", {.layout = {4}}, {0, 1, 3}, 3); }

TEST(OneHost, TheSizeOfTheVictimDoesNotMatter) {
  kill_each("one of 4 killed, 512 MiB", {.layout = {4}, .ballast_rank = 2, .ballast_mib = 512}, {2}, 3);
}

TEST(OneHost, ALoneSurvivorNotices) { kill_each("one of 2 killed", {.layout = {2}}, {0, 1}, 2); }

TEST(OneHost, TwoVictimsAtOnceGiveAllSurvivorsTheSameError) {
  for (int i = 0; i < 5; ++i) {
    Crew crew({.layout = {5}});
    ASSERT_TRUE(crew.ready());
    crew.signal(1, SIGKILL);
    crew.signal(3, SIGKILL);
    ASSERT_TRUE(crew.wait_for_errors({0, 2, 4}, kGenerousMs));
    for (int r : {0, 2, 4}) {
      EXPECT_EQ(crew.text_of(r), crew.text_of(0));
      for (int peer : crew.peers_of(r)) EXPECT_TRUE(peer == 1 || peer == 3);
      EXPECT_FALSE(crew.peers_of(r).empty());
    }
  }
}

TEST(OneHost, AStoppedRankIsNamedWhenItsTimeIsUp) {
  Crew crew({.layout = {3}, .dead_ms = 500});
  ASSERT_TRUE(crew.ready());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it has been seen alive
  const int64_t start_ns = test::monotonic_ns();
  crew.signal(1, SIGSTOP);
  ASSERT_TRUE(crew.wait_for_errors({0, 2}, 500 + kGenerousMs));
  for (int r : {0, 2}) {
    EXPECT_THAT(crew.peers_of(r), ElementsAre(1));
    EXPECT_EQ(crew.text_of(r), crew.text_of(0));
  }
  print("one of 3 stopped, dead_ms = 500", delays(crew, {0, 2}, start_ns));
  EXPECT_GE(delays(crew, {0}, start_ns)[0], 400);
  crew.signal(1, SIGCONT);
  ASSERT_TRUE(crew.wait_for_errors({1}, kGenerousMs));  // it learns that it is out
  EXPECT_EQ(crew.text_of(1), crew.text_of(0));
}

TEST(OneHost, AShortStopIsForgiven) {
  Crew crew({.layout = {3}, .dead_ms = 1500});
  ASSERT_TRUE(crew.ready());
  for (int i = 0; i < 3; ++i) {
    crew.signal(i, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    crew.signal(i, SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  for (int r = 0; r < 3; ++r) EXPECT_EQ(crew.text_of(r), "");
}

// One process reports; the others' listeners are called although no rank waits or polls.
TEST(OneHost, ListenersOfOtherProcessesAreCalledWithinMilliseconds) {
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) {
    Crew crew({.layout = {4}, .idle_mask = 0xf});
    ASSERT_TRUE(crew.ready());
    const int64_t start_ns = test::monotonic_ns();
    crew.stage().reporter_plus_one.store(2);
    ASSERT_TRUE(crew.wait_for_errors({0, 1, 2, 3}, kGenerousMs));
    const int64_t deadline_ns = test::monotonic_ns() + kGenerousMs * 1'000'000;
    for (int r = 0; r < 4; ++r) {
      auto& called = crew.stage().workers[r].listener_at_ns;
      while (called.load() == 0 && test::monotonic_ns() < deadline_ns) std::this_thread::yield();
      ASSERT_NE(called.load(), 0) << "rank " << r;
      times.push_back(static_cast<double>(called.load() - start_ns) * 1e-6);
    }
  }
  print("listener after another process's report", times);
}

TEST(ThreeHosts, AllNameAKilledLeader) {
  kill_each("leader of 3 hosts x 2 killed", {.layout = {2, 2, 2}}, {0, 2, 4}, 2);
}

TEST(ThreeHosts, AllNameAKilledRankThatLeadsNothing) {
  kill_each("non-leader of 3 hosts x 3 killed", {.layout = {3, 3, 3}}, {1, 5, 8}, 1);
}

TEST(ThreeHosts, AllNameARankThatWasAloneOnItsHost) {
  kill_each("lone rank of 3 hosts killed", {.layout = {1, 1, 1}}, {0, 1, 2}, 1);
}

// A node-mate tells the other hosts; the connections of a large leader end only when its memory is gone.
TEST(ThreeHosts, AKilledLeadersSizeDoesNotMatter) {
  kill_each("leader of 3 hosts x 2 killed, 512 MiB", {.layout = {2, 2, 2}, .ballast_rank = 2, .ballast_mib = 512}, {2},
            2);
}

// The dead rank's node-mates compute and do not look.
TEST(ThreeHosts, ADeathIsNoticedThoughItsNodeMatesAreBusy) {
  kill_each("non-leader killed beside busy node-mates", {.layout = {3, 2}, .idle_mask = 0b00011}, {2}, 2);
}

TEST(ThreeHosts, AStoppedHostIsNamedWithAllItsRanks) {
  for (int host : {0, 1}) {
    Crew crew({.layout = {2, 2, 2}, .dead_ms = 500});
    ASSERT_TRUE(crew.ready());
    const int64_t start_ns = test::monotonic_ns();
    crew.signal_host(host, SIGSTOP);
    const auto survivors = everybody_but(crew, {2 * host, 2 * host + 1});
    ASSERT_TRUE(crew.wait_for_errors(survivors, 500 + kGenerousMs));
    for (int r : survivors) EXPECT_THAT(crew.peers_of(r), ElementsAre(2 * host, 2 * host + 1)) << crew.text_of(r);
    print("host of 3 stopped, dead_ms = 500", delays(crew, survivors, start_ns));
    EXPECT_GE(std::ranges::min(delays(crew, survivors, start_ns)), 400);
    crew.signal_host(host, SIGCONT);
    EXPECT_TRUE(crew.wait_for_errors({2 * host, 2 * host + 1}, kGenerousMs));
    EXPECT_EQ(crew.finish(), 0);
  }
}

// Its node-mate can tell a stopped process from a silent host, and is heard first.
TEST(ThreeHosts, AStoppedLeaderIsNamedAlone) {
  Crew crew({.layout = {2, 2}, .dead_ms = 800});
  ASSERT_TRUE(crew.ready());
  crew.signal(2, SIGSTOP);
  ASSERT_TRUE(crew.wait_for_errors({0, 1, 3}, 800 + kGenerousMs));
  EXPECT_THAT(crew.peers_of(3), ElementsAre(2)) << crew.text_of(3);
  for (int r : {0, 1}) EXPECT_THAT(crew.peers_of(r), ElementsAre(2)) << crew.text_of(r);
}

TEST(ThreeHosts, AShortStopOfAHostIsForgiven) {
  Crew crew({.layout = {1, 2, 1}, .dead_ms = 1500});
  ASSERT_TRUE(crew.ready());
  for (int host = 0; host < 3; ++host) {
    crew.signal_host(host, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    crew.signal_host(host, SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  for (int r = 0; r < crew.ranks(); ++r) EXPECT_EQ(crew.text_of(r), "");
}

TEST(ThreeHosts, AReportReachesAllHostsWithOneText) {
  std::vector<double> times;
  for (int reporter : {0, 1, 3, 5}) {
    Crew crew({.layout = {2, 2, 2}});
    ASSERT_TRUE(crew.ready());
    const int64_t start_ns = test::monotonic_ns();
    crew.stage().reporter_plus_one.store(reporter + 1);
    ASSERT_TRUE(crew.wait_for_errors({0, 1, 2, 3, 4, 5}, kGenerousMs));
    for (int r = 0; r < 6; ++r) EXPECT_EQ(crew.text_of(r), "rank " + std::to_string(reporter) + " aborts");
    for (double time : delays(crew, {0, 1, 2, 3, 4, 5}, start_ns)) times.push_back(time);
  }
  print("report to 3 hosts x 2", times);
}

TEST(ThreeHosts, LeavingInOrderIsNoDeath) {
  Crew crew({.layout = {2, 2, 1}, .dead_ms = 500});
  ASSERT_TRUE(crew.ready());
  for (int leaver : {2, 0, 4, 1}) {
    crew.stage().leave_mask.fetch_or(1u << leaver);
    ASSERT_TRUE(crew.wait_for_phase(leaver, test::Phase::Destroyed, kGenerousMs));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // its process has ended
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  for (int r = 0; r < 5; ++r) EXPECT_EQ(crew.text_of(r), "") << "rank " << r;
  EXPECT_EQ(crew.finish(), 0);
}

TEST(ThreeHosts, LeavingDoesNotWaitForStoppedPeers) {
  Crew crew({.layout = {1, 1, 1}, .dead_ms = 60000});
  ASSERT_TRUE(crew.ready());
  crew.signal(0, SIGSTOP);
  crew.stage().leave_mask.store(0b110);
  for (int r : {1, 2}) {
    ASSERT_TRUE(crew.wait_for_phase(r, test::Phase::Destroyed, kGenerousMs));
    EXPECT_LE(crew.stage().workers[r].destroy_ns.load(), 100'000'000);
  }
  crew.signal(0, SIGCONT);
  EXPECT_EQ(crew.finish(), 0);
  EXPECT_EQ(crew.text_of(0), "");
}

}  // namespace
}  // namespace ccom

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--worker") == 0) return ccom::test::run_worker(argc, argv);
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
