// SPDX-License-Identifier: Apache-2.0
//
// What real processes see when something goes wrong: a killed rank is named to all survivors on every transport, a late
// rank is named by a warning and by the timeout; nothing hangs and nothing is left behind. CCOM_TEST_LONG=1: 1,000
// kills per transport and 50 stops instead of a few, or CCOM_TEST_POINTS; CCOM_TEST_SEED.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "tests/harness/effort.h"
#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

const std::vector<std::string> kTransports{"shm", "tcp", "ofi", "mixed"};
const std::vector<int> kAll = first_ranks(4);
// Less than a killed process takes to die and another one to see it.
constexpr std::chrono::microseconds kInstant(50);

std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) names.insert(entry.path());
  return names;
}

std::vector<int> all_but(const std::vector<int>& ranks) { return first_ranks(4, ranks); }

// What CCOM_ALGO can name on the transport; "" leaves the choice to ccom.
const std::vector<std::string>& algorithms_of(const std::string& transport) {
  static const std::vector<std::string> on_one_host = {"", "node", "ring", "recursive_doubling", "double_tree"};
  static const std::vector<std::string> on_several = {
      "", "ring", "circulant", "recursive_doubling", "two_shot", "one_shot", "tree", "double_tree", "binomial"};
  static const std::vector<std::string> on_two = {"", "hierarchical", "ring", "circulant", "double_tree"};
  return transport == "shm" ? on_one_host : transport.starts_with("mixed") ? on_two : on_several;
}

// One kill: who, in the middle of what.
struct Kill {
  std::vector<int> victims;
  std::string algorithm;
  std::string calls = "cycle";
  size_t bytes;
  std::chrono::microseconds instant;  // after the third call

  Kill(const std::string& transport, std::mt19937_64& random) {
    victims = {static_cast<int>(random() % 4)};
    if (random() % 5 == 0) victims.push_back((victims[0] + 1 + static_cast<int>(random() % 3)) % 4);
    std::ranges::sort(victims);
    const std::vector<std::string>& algorithms = algorithms_of(transport);
    algorithm = algorithms[random() % algorithms.size()];
    bytes = std::array<size_t, 4>{8, 4096, 65536, 2 << 20}[random() % 4];
    instant = std::chrono::microseconds(random() % 30000);
  }
  std::string text() const {
    return "victims " + list(victims) + ", " + std::to_string(bytes) + " bytes, algorithm '" + algorithm + "', after " +
           std::to_string(instant.count()) + " us";
  }
};

// "failed 6 [1,2] text": the code and the ranks.
std::string blame_of(const std::string& line) { return line.substr(0, line.find(']') + 1); }

// "[CCOM-E025]", with which the line ends.
std::string key_of(const std::string& line) { return line.substr(std::min(line.size(), line.rfind("[CCOM-E"))); }

// A survivor names all dead ranks. If the second one was killed later, or no survivor shares a host with both, it may
// name the one that was found first, but the same one as the others.
void check_names(const std::vector<int>& victims, bool all, const std::string& line,
                 const std::string& line_of_another) {
  const std::string blame = blame_of(line);
  const bool names_one =
      std::ranges::any_of(victims, [&](int victim) { return blame == "failed 6 " + list({victim}); });
  EXPECT_TRUE((names_one && !all) || blame == "failed 6 " + list(victims)) << line;
  EXPECT_EQ(blame, blame_of(line_of_another)) << "survivors blame different ranks";
  EXPECT_EQ(key_of(line).size(), std::strlen("[CCOM-E025]")) << line;
  EXPECT_EQ(key_of(line), key_of(line_of_another)) << "survivors have errors with different keys: " << line << "\n"
                                                   << line_of_another;
}

// Whether a survivor shares their host, and nothing was there to see of the first one's death when the last was killed.
bool kill_at_once(Job& job, const std::string& transport, const std::vector<int>& victims) {
  const auto start = std::chrono::steady_clock::now();
  for (const int victim : victims) job.kill(victim);
  const bool is_instant = std::chrono::steady_clock::now() - start < kInstant;
  return is_instant && (transport == "shm" || transport == "tcp-on-one-host");
}

// Adds the times after which the survivors knew.
void kill_in_a_job(const std::string& transport, const Kill& kill, std::vector<double>& noticed_ms) {
  const auto before = shared_memory_files();
  Job::Environment more{{"CCOM_DEAD_MS", "60000"}};  // longer than the test waits: nobody is found by its silence
  if (!kill.algorithm.empty()) more["CCOM_ALGO"] = kill.algorithm;
  Job job("rank_program", 4, {"loop", std::to_string(kill.bytes), kill.calls}, ranks_on(transport, more));
  ASSERT_TRUE(job.wait_for("ready", kAll, milliseconds(60000))) << job.transcript();
  std::this_thread::sleep_for(kill.instant);
  const auto killed = std::chrono::steady_clock::now();
  const bool at_once = kill_at_once(job, transport, kill.victims);
  const std::vector<int> survivors = all_but(kill.victims);
  ASSERT_TRUE(job.wait_for("failed", survivors, milliseconds(20000))) << job.transcript();
  for (const int rank : survivors) {
    check_names(kill.victims, at_once, job.line(rank, "failed"), job.line(survivors[0], "failed"));
    noticed_ms.push_back(std::chrono::duration<double, std::milli>(job.when(rank, "failed") - killed).count());
  }
  ASSERT_TRUE(job.finish(milliseconds(10000))) << "a survivor hangs at its end";
  EXPECT_EQ(shared_memory_files(), before);
}

// one_per_host: two at once, of different hosts. Of splits: in the middle of splits, of calls of parts and of their
// ends.
void kill_some_of_four(const std::string& transport, size_t times, bool one_per_host = false, bool of_splits = false) {
  const uint64_t seed = test_seed();
  std::mt19937_64 random(seed);
  std::vector<double> noticed_ms;
  for (size_t i = 0; i < times; ++i) {
    Kill kill(transport, random);
    if (one_per_host) kill.victims = {static_cast<int>(random() % 2), 2 + static_cast<int>(random() % 2)};
    if (of_splits) {
      kill.calls = "parts";
      kill.algorithm = "";
    }
    SCOPED_TRACE(transport + ", CCOM_TEST_SEED=" + std::to_string(seed) + ", round " + std::to_string(i) + ": " +
                 kill.text());
    kill_in_a_job(transport, kill, noticed_ms);
    if (testing::Test::HasFatalFailure()) return;
  }
  std::printf("%s: %zu kills, noticed after %s\n", transport.c_str(), times, summary_of(noticed_ms).c_str());
}

TEST(KilledRank, IsNamedToAllSurvivorsOnShm) { kill_some_of_four("shm", count_from("CCOM_TEST_POINTS", 12, 1000)); }
TEST(KilledRank, IsNamedToAllSurvivorsOnTcp) { kill_some_of_four("tcp", count_from("CCOM_TEST_POINTS", 10, 1000)); }
TEST(KilledRank, IsNamedToAllSurvivorsOnOfi) { kill_some_of_four("ofi", count_from("CCOM_TEST_POINTS", 5, 1000)); }
TEST(KilledRank, IsNamedToAllSurvivorsOnTwoHosts) {
  kill_some_of_four("mixed", count_from("CCOM_TEST_POINTS", 8, 1000));
}
TEST(KilledRank, AndOneOnAnotherHostAreNamedAlikeOnTwoHosts) {
  kill_some_of_four("mixed", count_from("CCOM_TEST_POINTS", 4, 500), true);
}
TEST(KilledRank, IsNamedToAllSurvivorsOnTwoHostsWithTls) {
  kill_some_of_four("mixed-tls", count_from("CCOM_TEST_POINTS", 3, 500));
}
TEST(KilledRank, IsNamedToAllSurvivorsOnTcpInsideAHost) {
  kill_some_of_four("tcp-on-one-host", count_from("CCOM_TEST_POINTS", 3, 200));
}

class KilledRankOfASplit : public testing::TestWithParam<std::string> {};
TEST_P(KilledRankOfASplit, IsNamedToAllSurvivors) {
  kill_some_of_four(GetParam(), count_from("CCOM_TEST_POINTS", 6, 300), false, true);
}
INSTANTIATE_TEST_SUITE_P(On, KilledRankOfASplit, testing::Values("shm", "tcp", "mixed"), name_of_case);

// A job on each transport, all at the same time, in the middle of calls; one rank of each is stopped.
class StoppedRanks {
 public:
  StoppedRanks(const std::string& dead_ms, std::mt19937_64& random) : victim_(static_cast<int>(random() % 4)) {
    for (const std::string& transport : kTransports) {
      jobs_.push_back(std::make_unique<Job>("rank_program", 4, std::vector<std::string>{"loop", "65536", "cycle"},
                                            ranks_on(transport, {{"CCOM_DEAD_MS", dead_ms}})));
    }
    for (auto& job : jobs_) EXPECT_TRUE(job->wait_for("ready", kAll, milliseconds(60000))) << job->transcript();
    signal(SIGSTOP);
  }
  void signal(int number) {
    for (auto& job : jobs_) job->signal(victim_, number);
  }
  int victim() const { return victim_; }
  Job& job(size_t transport) { return *jobs_[transport]; }

 private:
  const int victim_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

TEST(StoppedRank, ThatGoesOnIsForgiven) {
  std::mt19937_64 random(test_seed());
  const size_t times = count_from("CCOM_TEST_POINTS", 1, 50);
  for (size_t i = 0; i < times; ++i) {
    StoppedRanks ranks("6000", random);
    std::this_thread::sleep_for(milliseconds(1000 + random() % 1000));
    ranks.signal(SIGCONT);
    for (size_t transport = 0; transport < kTransports.size(); ++transport) {
      Job& job = ranks.job(transport);
      job.forget_lines();
      EXPECT_TRUE(job.wait_for("calls", kAll, milliseconds(20000)))
          << kTransports[transport] << ", rank " << ranks.victim() << " was stopped\n"
          << job.transcript();
    }
  }
}

TEST(StoppedRank, ThatStaysSoIsNamedToAllSurvivorsAndToldWhenItGoesOn) {
  std::mt19937_64 random(test_seed());
  const size_t times = count_from("CCOM_TEST_POINTS", 1, 50);
  for (size_t i = 0; i < times; ++i) {
    StoppedRanks ranks("1000", random);
    const std::string blame = "failed 6 " + list({ranks.victim()});
    for (size_t transport = 0; transport < kTransports.size(); ++transport) {
      Job& job = ranks.job(transport);
      const std::vector<int> others = all_but({ranks.victim()});
      EXPECT_TRUE(job.wait_for("failed", others, milliseconds(10000))) << kTransports[transport] << job.transcript();
      for (const int rank : others) EXPECT_EQ(blame_of(job.line(rank, "failed")), blame) << kTransports[transport];
    }
    ranks.signal(SIGCONT);
    for (size_t transport = 0; transport < kTransports.size(); ++transport) {
      Job& job = ranks.job(transport);
      EXPECT_TRUE(job.wait_for("failed 6", {ranks.victim()}, milliseconds(10000))) << job.transcript();
      EXPECT_TRUE(job.finish(milliseconds(10000))) << kTransports[transport] << job.transcript();
    }
  }
}

// What mostly waits: jobs on all of them at the same time.
template <typename Body>
void on_each(const std::vector<std::string>& transports, const Body& body) {
  std::vector<std::jthread> threads;
  for (const std::string& transport : transports) threads.emplace_back([&body, transport] { body(transport); });
}

TEST(LateRank, IsNamedByAWarningOfEveryWaitingRank) {
  on_each(kTransports, [](const std::string& transport) {
    Job job("rank_program", 4, {"sleep", "3000"}, ranks_on(transport, {{"CCOM_WARN_MS", "150"}}));
    ASSERT_TRUE(job.wait_for("failed", all_but({1}), milliseconds(20000))) << job.transcript();
    for (const int rank : all_but({1})) {
      const auto is_warning = [rank](const std::string& line) {
        return line.find("rank " + std::to_string(rank) + " has waited") != std::string::npos &&
               line.find("in call 1 (barrier): rank 1 has not come yet") != std::string::npos;
      };
      EXPECT_TRUE(std::ranges::any_of(job.lines(rank), is_warning)) << transport << "\n" << job.transcript();
    }
    EXPECT_TRUE(job.finish(milliseconds(20000))) << job.transcript();
  });
}

TEST(LateRank, IsNamedByTheTimeout) {
  on_each({"shm", "tcp", "tcp-on-one-host", "ofi", "mixed"}, [](const std::string& transport) {
    Job job("rank_program", 4, {"sleep", "500"}, ranks_on(transport));
    ASSERT_TRUE(job.wait_for("failed", all_but({1}), milliseconds(20000))) << job.transcript();
    for (const int rank : all_but({1})) {
      EXPECT_TRUE(job.line(rank, "failed").starts_with("failed 8 [1]"))
          << transport << ": " << job.line(rank, "failed");
    }
    EXPECT_TRUE(job.finish(milliseconds(20000))) << job.transcript();
  });
}

// T7: the warning about a mate that is stopped for a second blocked rank 0 inside its call, or its liveness thread, so
// that its mate declared it dead; its end blocked too.
TEST(FullPipe, AsStderrStopsNeitherCallsNorLiveness) {
  on_each({"shm", "tcp", "mixed"}, [](const std::string& transport) {
    Job job("rank_program", 4, {"unread", "5"}, ranks_on(transport, {{"CCOM_LOG", "debug"}}));
    ASSERT_TRUE(job.wait_for("ready", kAll, milliseconds(60000))) << transport << "\n" << job.transcript();
    job.signal(1, SIGSTOP);
    std::this_thread::sleep_for(milliseconds(1200));  // long enough for the warning
    job.signal(1, SIGCONT);
    EXPECT_TRUE(job.wait_for("done", kAll, milliseconds(20000))) << transport << "\n" << job.transcript();
    EXPECT_TRUE(job.finish(milliseconds(10000))) << transport << ": a rank's end hangs";
  });
}

}  // namespace
}  // namespace ccom
