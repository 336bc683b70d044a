// SPDX-License-Identifier: Apache-2.0
//
// The rank whose id others meet at dies, or stops, while a communicator grows, at instants spread over all of it: the
// ranks that were there name it, those that are new learn that they cannot join. After a death nobody waits for the
// start's time. CCOM_TEST_LONG=1: 300 instants instead of a few; CCOM_TEST_SEED.
#include <gtest/gtest.h>

#include <csignal>
#include <random>
#include <thread>

#include "tests/harness/effort.h"
#include "tests/harness/folder.h"
#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

constexpr int kOld = 3, kRanks = 5, kServer = 1;
// Far beyond the 3 s after which a stopped rank is given up, and below the start's time, which new ranks may wait for a
// stopped server that has not answered yet: it may only be slow.
constexpr milliseconds kSoon{20000}, kStart{60000};

std::vector<int> others() { return first_ranks(kRanks, {kServer}); }

void is_told(const Job& job, int rank) {
  if (!job.line(rank, "called").empty()) return;  // before the death
  const std::string line = job.line(rank, "failed ");
  if (rank < kOld) {
    EXPECT_TRUE(line.starts_with("failed 6 [" + std::to_string(kServer) + "]")) << rank << ": " << line;
  } else {
    EXPECT_FALSE(line.empty()) << rank;
  }
}

Job start_job(const std::string& transport, const TemporaryFolder& folder, milliseconds init_timeout) {
  return Job("rank_program", kRanks, {"grow", std::to_string(kOld), folder / "id"},
             ranks_on(transport, {{"CCOM_INIT_TIMEOUT_MS", std::to_string(init_timeout.count())}}));
}

// From the making of the id to the first call of all ranks.
double duration_of_grow(const std::string& transport) {
  const TemporaryFolder folder;
  Job job = start_job(transport, folder, kStart);
  EXPECT_TRUE(job.wait_for("called", first_ranks(kRanks), milliseconds(60000))) << job.transcript();
  return std::chrono::duration<double, std::milli>(job.when(kServer, "called") - job.when(kServer, "growing")).count();
}

class GrowKills : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(GrowKills, U4NameTheRankThatServesTheId) {
  const auto& [transport, signal] = GetParam();
  std::mt19937_64 random(test_seed());
  const size_t instants = count_from("CCOM_TEST_KILLS", signal == SIGKILL ? 12 : 3, 300);
  const double duration_ms = duration_of_grow(transport);
  for (size_t i = 0; i < instants; ++i) {
    const TemporaryFolder folder;
    Job job = start_job(transport, folder, signal == SIGKILL ? kStart : kSoon / 2);
    ASSERT_TRUE(job.wait_for("growing", {kServer}, milliseconds(60000))) << job.transcript();
    const double instant_ms = std::uniform_real_distribution<double>(0, 1.2 * duration_ms)(random);
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(instant_ms));
    job.signal(kServer, signal);
    for (const int rank : others()) {
      const auto end = std::chrono::steady_clock::now() + kSoon;
      while (job.line(rank, "called").empty() && job.line(rank, "failed").empty() &&
             std::chrono::steady_clock::now() < end)
        (void)job.wait_for("called", {rank}, milliseconds(20));
      is_told(job, rank);
    }
    if (HasFailure()) FAIL() << "after " << instant_ms << " ms\n" << job.transcript();
    job.signal(kServer, SIGKILL);
    EXPECT_TRUE(job.finish(milliseconds(20000))) << job.transcript();
  }
}

INSTANTIATE_TEST_SUITE_P(On, GrowKills,
                         testing::Combine(testing::Values("shm", "tcp"), testing::Values(SIGKILL, SIGSTOP)),
                         [](const auto& on) {
                           return std::get<0>(on.param) + (std::get<1>(on.param) == SIGKILL ? "_killed" : "_stopped");
                         });

}  // namespace
}  // namespace ccom
