// SPDX-License-Identifier: Apache-2.0
//
// What real processes see when something goes wrong: a killed rank is named to all survivors on every transport, a late
// rank is named by a warning and by the timeout; nothing hangs and nothing is left behind. CCOM_TEST_LONG=1: 100 kills
// per transport instead of a few.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "tests/processes/job.h"
#include "tests/processes/rotation.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) names.insert(entry.path());
  return names;
}

std::vector<int> all_but(int nranks, int rank) {
  std::vector<int> ranks;
  for (int r = 0; r < nranks; ++r) {
    if (r != rank) ranks.push_back(r);
  }
  return ranks;
}

void kill_one_of_four(const std::string& transport, int times, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> noticed_ms;
  for (int i = 0; i < times; ++i) {
    const auto before = shared_memory_files();
    const int victim = static_cast<int>(random() % 4);
    const size_t bytes = std::array<size_t, 4>{8, 4096, 65536, 4 << 20}[random() % 4];
    Job job(4, {"loop", std::to_string(bytes)}, [&](int rank) { return environment_for(transport, rank); });
    ASSERT_TRUE(job.wait_for("ready", {0, 1, 2, 3}, milliseconds(60000))) << transport << "\n" << job.transcript();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    const auto killed = std::chrono::steady_clock::now();
    job.kill(victim);
    const std::vector<int> survivors = all_but(4, victim);
    ASSERT_TRUE(job.wait_for("failed", survivors, milliseconds(20000)))
        << transport << ", round " << i << ", seed " << seed << ", victim " << victim << ", " << bytes << " bytes\n"
        << job.transcript();
    for (const int rank : survivors) {
      const std::string line = job.line(rank, "failed");
      EXPECT_TRUE(line.starts_with("failed 6 [" + std::to_string(victim) + "]"))
          << transport << ", round " << i << ": rank " << rank << " does not name rank " << victim
          << " alone: " << line;
      noticed_ms.push_back(std::chrono::duration<double, std::milli>(job.when(rank, "failed") - killed).count());
    }
    ASSERT_TRUE(job.finish(milliseconds(10000))) << "a survivor hangs at its end";
    EXPECT_EQ(shared_memory_files(), before);
  }
  std::ranges::sort(noticed_ms);
  std::printf("%s: %d kills, noticed after p50 %.1f ms, max %.1f ms\n", transport.c_str(), times,
              noticed_ms[noticed_ms.size() / 2], noticed_ms.back());
}

TEST(KilledRank, IsNamedToAllSurvivorsOnShm) { kill_one_of_four("shm", is_long() ? 100 : 8, 1); }
TEST(KilledRank, IsNamedToAllSurvivorsOnTcp) { kill_one_of_four("tcp", is_long() ? 100 : 8, 2); }
TEST(KilledRank, IsNamedToAllSurvivorsOnOfi) { kill_one_of_four("ofi", is_long() ? 20 : 4, 3); }
TEST(KilledRank, IsNamedToAllSurvivorsOnTwoHosts) { kill_one_of_four("mixed", is_long() ? 100 : 6, 4); }
TEST(KilledRank, IsNamedToAllSurvivorsOnTcpInsideAHost) { kill_one_of_four("tcp-on-one-host", is_long() ? 20 : 3, 5); }

TEST(LateRank, IsNamedByAWarningOfEveryWaitingRank) {
  for (const std::string transport : {"shm", "tcp", "ofi", "mixed"}) {
    Job job(4, {"sleep"}, [&](int rank) {
      Job::Environment environment = environment_for(transport, rank);
      environment["CCOM_WARN_MS"] = "150";
      return environment;
    });
    ASSERT_TRUE(job.wait_for("failed", all_but(4, 1), milliseconds(20000))) << job.transcript();
    for (const int rank : all_but(4, 1)) {
      const auto is_warning = [rank](const std::string& line) {
        return line.find("rank " + std::to_string(rank) + " has waited") != std::string::npos &&
               line.find("in call 1 (barrier): rank 1 has not come yet") != std::string::npos;
      };
      EXPECT_TRUE(std::ranges::any_of(job.lines(rank), is_warning)) << transport << "\n" << job.transcript();
    }
    EXPECT_TRUE(job.finish(milliseconds(20000))) << job.transcript();
  }
}

TEST(LateRank, IsNamedByTheTimeout) {
  for (const std::string transport : {"shm", "tcp", "tcp-on-one-host", "ofi", "mixed"}) {
    Job job(4, {"sleep"}, [&](int rank) { return environment_for(transport, rank); });
    ASSERT_TRUE(job.wait_for("failed", all_but(4, 1), milliseconds(20000))) << job.transcript();
    for (const int rank : all_but(4, 1)) {
      EXPECT_TRUE(job.line(rank, "failed").starts_with("failed 8 [1]"))
          << transport << ": " << job.line(rank, "failed");
    }
    EXPECT_TRUE(job.finish(milliseconds(20000))) << job.transcript();
  }
}

// T7: the warning about a mate that is stopped for a second blocked rank 0 inside its call, or its liveness thread, so
// that its mate declared it dead; its end blocked too.
TEST(FullPipe, AsStderrStopsNeitherCallsNorLiveness) {
  for (const std::string transport : {"shm", "tcp", "mixed"}) {
    Job job(4, {"unread", "5"}, [&](int rank) {
      Job::Environment added = environment_for(transport, rank);
      added["CCOM_LOG"] = "debug";
      return added;
    });
    ASSERT_TRUE(job.wait_for("ready", {0, 1, 2, 3}, milliseconds(60000))) << transport << "\n" << job.transcript();
    job.signal(1, SIGSTOP);
    std::this_thread::sleep_for(milliseconds(1200));
    job.signal(1, SIGCONT);
    EXPECT_TRUE(job.wait_for("done", {0, 1, 2, 3}, milliseconds(20000))) << transport << "\n" << job.transcript();
    EXPECT_TRUE(job.finish(milliseconds(10000))) << transport << ": a rank's end hangs";
  }
}

}  // namespace
}  // namespace ccom
