// SPDX-License-Identifier: Apache-2.0
//
// Deaths of real processes: kill -9 and SIGSTOP of ranks on one host and on several (hosts are processes that share no
// board and talk over loopback). Shows that every survivor names the same dead rank, how fast, and that leaving and
// short pauses are no deaths. Times are printed. The shortest is asserted to be what is promised, beside what the
// machine takes at that moment for a death that only its parent waits for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/status.h"
#include "tests/harness/waiting.h"
#include "tests/liveness/worker_processes.h"

namespace ccom {
namespace {

using test::WorkerOptions;
using test::WorkerProcesses;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kGenerousMs = 2000;

std::vector<int> everybody_but(const WorkerProcesses& workers, const std::vector<int>& victims) {
  std::vector<int> ranks;
  for (int r = 0; r < workers.ranks(); ++r)
    if (std::ranges::find(victims, r) == victims.end()) ranks.push_back(r);
  return ranks;
}

// Milliseconds from `start_ns` until each of `ranks` knew.
std::vector<double> delays(WorkerProcesses& workers, const std::vector<int>& ranks, int64_t start_ns) {
  std::vector<double> values;
  for (int r : ranks)
    values.push_back(static_cast<double>(workers.records().workers[r].failed_at_ns.load() - start_ns) * 1e-6);
  return values;
}

void print(const char* what, std::vector<double> delays_ms) {
  std::ranges::sort(delays_ms);
  std::printf("%s: p50 %.2f ms, max %.2f ms (%zu observations)\n", what, delays_ms[delays_ms.size() / 2],
              delays_ms.back(), delays_ms.size());
}

// Kills `victim` and checks that all others name it, and alike.
std::vector<double> kill_and_check(const WorkerOptions& options, int victim) {
  WorkerProcesses workers(options);
  const auto survivors = everybody_but(workers, {victim});
  const int64_t start_ns = test::monotonic_ns();
  workers.signal(victim, SIGKILL);
  EXPECT_TRUE(workers.wait_for_errors(survivors, kGenerousMs));
  for (int r : survivors) {
    EXPECT_THAT(workers.peers_of(r), ElementsAre(victim)) << "rank " << r << ": " << workers.text_of(r);
    EXPECT_EQ(workers.records().workers[r].code, static_cast<int>(Code::RemoteError));
    EXPECT_STREQ(workers.records().workers[r].host, workers.records().workers[survivors[0]].host);
    EXPECT_THAT(workers.text_of(r), HasSubstr("rank " + std::to_string(victim) + " on host"));
  }
  const auto times = delays(workers, survivors, start_ns);
  EXPECT_EQ(workers.finish(), 0);
  return times;
}

// From a kill to waitpid()'s return, milliseconds.
double death_of_a_child_ms() {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const int64_t start_ns = test::monotonic_ns();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return static_cast<double>(test::monotonic_ns() - start_ns) * 1e-6;
}

void kill_each(const char* what, const WorkerOptions& options, const std::vector<int>& victims, int rounds) {
  std::vector<double> all;
  double floor = 0;
  for (int i = 0; i < rounds; ++i) {
    for (int victim : victims) {
      floor = std::max(floor, death_of_a_child_ms());
      for (double time : kill_and_check(options, victim)) all.push_back(time);
    }
  }
  print(what, all);
  const double promised = options.layout.size() == 1 ? 10 : 50,
               of_memory = options.layout.size() > 1 && options.ballast_mib > 0 ? 500 : 0;
  EXPECT_LT(*std::ranges::min_element(all), promised + of_memory + 10 * floor);
}

TEST(OneHost, EverySurvivorNamesAKilledRank) { kill_each("one of 4 killed", {.layout = {4}}, {0, 1, 3}, 3); }

TEST(OneHost, TheSizeOfTheVictimDoesNotMatter) {
  kill_each("one of 4 killed, 512 MiB", {.layout = {4}, .ballast_rank = 2, .ballast_mib = 512}, {2}, 3);
}

TEST(OneHost, ALoneSurvivorNotices) { kill_each("one of 2 killed", {.layout = {2}}, {0, 1}, 2); }

TEST(OneHost, TwoVictimsAtOnceGiveAllSurvivorsTheSameError) {
  for (int i = 0; i < 5; ++i) {
    WorkerProcesses workers({.layout = {5}});
    workers.signal(1, SIGKILL);
    workers.signal(3, SIGKILL);
    ASSERT_TRUE(workers.wait_for_errors({0, 2, 4}, kGenerousMs));
    for (int r : {0, 2, 4}) {
      EXPECT_EQ(workers.text_of(r), workers.text_of(0));
      for (int peer : workers.peers_of(r)) EXPECT_TRUE(peer == 1 || peer == 3);
      EXPECT_FALSE(workers.peers_of(r).empty());
    }
  }
}

TEST(OneHost, AStoppedRankIsNamedWhenItsTimeIsUp) {
  WorkerProcesses workers({.layout = {3}, .dead_ms = 500});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it has been seen alive
  const int64_t start_ns = test::monotonic_ns();
  workers.signal(1, SIGSTOP);
  ASSERT_TRUE(workers.wait_for_errors({0, 2}, 500 + kGenerousMs));
  for (int r : {0, 2}) {
    EXPECT_THAT(workers.peers_of(r), ElementsAre(1));
    EXPECT_EQ(workers.text_of(r), workers.text_of(0));
  }
  print("one of 3 stopped, dead_ms = 500", delays(workers, {0, 2}, start_ns));
  EXPECT_GE(delays(workers, {0}, start_ns)[0], 400);
  workers.signal(1, SIGCONT);
  ASSERT_TRUE(workers.wait_for_errors({1}, kGenerousMs));  // it learns that it is out
  EXPECT_EQ(workers.text_of(1), workers.text_of(0));
}

TEST(OneHost, AShortStopIsForgiven) {
  WorkerProcesses workers({.layout = {3}, .dead_ms = 1500});
  for (int i = 0; i < 3; ++i) {
    workers.signal(i, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(400));  // well below dead_ms
    workers.signal(i, SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  for (int r = 0; r < 3; ++r) EXPECT_EQ(workers.text_of(r), "");
}

// One process reports; the others' listeners are called although no rank waits or polls.
TEST(OneHost, ListenersOfOtherProcessesAreCalledWithinMilliseconds) {
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) {
    WorkerProcesses workers({.layout = {4}, .idle_mask = 0xf});
    const int64_t start_ns = test::monotonic_ns();
    workers.records().reporter_plus_one.store(2);
    ASSERT_TRUE(workers.wait_for_errors({0, 1, 2, 3}, kGenerousMs));
    for (int r = 0; r < 4; ++r) {
      auto& called = workers.records().workers[r].listener_at_ns;
      ASSERT_TRUE(wait_until([&called] { return called.load() != 0; })) << "rank " << r;
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

// A rank of the same host tells the other hosts; the connections of a large leader end only when its memory is gone.
TEST(ThreeHosts, AKilledLeadersSizeDoesNotMatter) {
  kill_each("leader of 3 hosts x 2 killed, 512 MiB", {.layout = {2, 2, 2}, .ballast_rank = 2, .ballast_mib = 512}, {2},
            2);
}

// The dead rank's other ranks of the host compute and do not look.
TEST(ThreeHosts, ADeathIsNoticedThoughItsNodeMatesAreBusy) {
  kill_each("non-leader killed beside busy ranks of its host", {.layout = {3, 2}, .idle_mask = 0b00011}, {2}, 2);
}

TEST(ThreeHosts, AStoppedHostIsNamedWithAllItsRanks) {
  for (int host : {0, 1}) {
    WorkerProcesses workers({.layout = {2, 2, 2}, .dead_ms = 500});
    const int64_t start_ns = test::monotonic_ns();
    workers.signal_host(host, SIGSTOP);
    const auto survivors = everybody_but(workers, {2 * host, 2 * host + 1});
    ASSERT_TRUE(workers.wait_for_errors(survivors, 500 + kGenerousMs));
    for (int r : survivors) EXPECT_THAT(workers.peers_of(r), ElementsAre(2 * host, 2 * host + 1)) << workers.text_of(r);
    print("host of 3 stopped, dead_ms = 500", delays(workers, survivors, start_ns));
    EXPECT_GE(std::ranges::min(delays(workers, survivors, start_ns)), 400);
    workers.signal_host(host, SIGCONT);
    EXPECT_TRUE(workers.wait_for_errors({2 * host, 2 * host + 1}, kGenerousMs));
    EXPECT_EQ(workers.finish(), 0);
  }
}

// A rank of its host can tell a stopped process from a silent host, and is heard first.
TEST(ThreeHosts, AStoppedLeaderIsNamedAlone) {
  WorkerProcesses workers({.layout = {2, 2}, .dead_ms = 800});
  workers.signal(2, SIGSTOP);
  ASSERT_TRUE(workers.wait_for_errors({0, 1, 3}, 800 + kGenerousMs));
  EXPECT_THAT(workers.peers_of(3), ElementsAre(2)) << workers.text_of(3);
  for (int r : {0, 1}) EXPECT_THAT(workers.peers_of(r), ElementsAre(2)) << workers.text_of(r);
}

TEST(ThreeHosts, AShortStopOfAHostIsForgiven) {
  WorkerProcesses workers({.layout = {1, 2, 1}, .dead_ms = 1500});
  for (int host = 0; host < 3; ++host) {
    workers.signal_host(host, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // well below dead_ms
    workers.signal_host(host, SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  for (int r = 0; r < workers.ranks(); ++r) EXPECT_EQ(workers.text_of(r), "");
}

TEST(ThreeHosts, AReportReachesAllHostsWithOneText) {
  std::vector<double> times;
  for (int reporter : {0, 1, 3, 5}) {
    WorkerProcesses workers({.layout = {2, 2, 2}});
    const int64_t start_ns = test::monotonic_ns();
    workers.records().reporter_plus_one.store(reporter + 1);
    ASSERT_TRUE(workers.wait_for_errors({0, 1, 2, 3, 4, 5}, kGenerousMs));
    for (int r = 0; r < 6; ++r) EXPECT_EQ(workers.text_of(r), "rank " + std::to_string(reporter) + " aborts");
    for (double time : delays(workers, {0, 1, 2, 3, 4, 5}, start_ns)) times.push_back(time);
  }
  print("report to 3 hosts x 2", times);
}

TEST(ThreeHosts, LeavingInOrderIsNoDeath) {
  WorkerProcesses workers({.layout = {2, 2, 1}, .dead_ms = 500});
  for (int leaver : {2, 0, 4, 1}) {
    workers.records().leave_mask.fetch_or(1u << leaver);
    ASSERT_TRUE(workers.wait_for_phase(leaver, test::Phase::Destroyed, kGenerousMs));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // its process has ended
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // longer than dead_ms
  for (int r = 0; r < 5; ++r) EXPECT_EQ(workers.text_of(r), "") << "rank " << r;
  EXPECT_EQ(workers.finish(), 0);
}

TEST(ThreeHosts, LeavingDoesNotWaitForStoppedPeers) {
  WorkerProcesses workers({.layout = {1, 1, 1}, .dead_ms = 60000});
  workers.signal(0, SIGSTOP);
  workers.records().leave_mask.store(0b110);
  for (int r : {1, 2}) {
    ASSERT_TRUE(workers.wait_for_phase(r, test::Phase::Destroyed, kGenerousMs));
    EXPECT_LE(workers.records().workers[r].destroy_ns.load(), 100'000'000);
  }
  workers.signal(0, SIGCONT);
  EXPECT_EQ(workers.finish(), 0);
  EXPECT_EQ(workers.text_of(0), "");
}

}  // namespace
}  // namespace ccom

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--worker") == 0) return ccom::test::run_worker(argc, argv);
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
