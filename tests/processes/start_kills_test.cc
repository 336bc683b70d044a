// SPDX-License-Identifier: Apache-2.0
//
// A rank that is killed while ranks meet, at instants spread over the whole start: the others end with an error that
// names it, soon or, where it had not yet reached the rendezvous, when the start's time is up; and nothing is left.
// CCOM_TEST_LONG=1: 200 instants per transport instead of a few; CCOM_TEST_SEED.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/harness/effort.h"
#include "tests/harness/folder.h"
#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Longer than a start lasts on a loaded machine, with which the test measures it.
constexpr milliseconds kLongestStart{60000};
const std::vector<int> kAll = first_ranks(4);

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Job start_job(const std::string& transport, const TemporaryFolder& folder, milliseconds init_timeout) {
  return Job("rank_program", 4, {"loop", "4096", "cycle"},
             ranks_on(transport, {{"CCOM_INIT_TIMEOUT_MS", std::to_string(init_timeout.count())},
                                  {"TMPDIR", folder.path()},
                                  {"XDG_RUNTIME_DIR", folder.path()}}));
}

// From the first process to the third call of the last rank, in milliseconds: the longest of some starts.
double start_duration(const std::string& transport, const TemporaryFolder& folder) {
  double longest = 0;
  for (int i = 0; i < 3; ++i) {
    const auto start = Clock::now();
    Job job = start_job(transport, folder, kLongestStart);
    EXPECT_TRUE(job.wait_for("ready", kAll, kLongestStart)) << job.transcript();
    longest = std::max(longest, milliseconds_since(start));
  }
  return longest;
}

// A survivor's first error: of the start, or of its first calls.
std::string error_of(const Job& job, int rank) {
  const std::string start = job.line(rank, "init ");
  return start.empty() ? job.line(rank, "failed ") : start;
}

// A rank that looks for the id after rank 0 has failed finds neither file nor server, and names rank 0 when its time is
// up: a limit (docs/reliability.md), which a loaded machine reaches. It says "begins" before it looks, so only its
// error tells that it never saw the file.
bool began_too_late(const Job& job, const std::string& error) {
  return error.starts_with("init 8 [0]") && error.find("rank 0 has not created it yet") != std::string::npos &&
         !job.line(0, "init ").empty();
}

// Kills one rank of a job at that instant of its start, and adds the time after which all others had ended.
void kill_at(const std::string& transport, const TemporaryFolder& folder, int victim, double instant_ms,
             milliseconds init_timeout, std::vector<double>& ended_ms) {
  const auto start = Clock::now();
  Job job = start_job(transport, folder, init_timeout);
  std::this_thread::sleep_until(
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(instant_ms)));
  // When one rank has joined, all have reached the rendezvous, and nobody has to wait for the start's time.
  job.wait_for("joined", kAll, milliseconds(1));
  const bool had_met = std::ranges::any_of(kAll, [&](int rank) { return !job.line(rank, "joined").empty(); });
  const auto killed = Clock::now();
  job.kill(victim);
  ASSERT_TRUE(job.finish(init_timeout + milliseconds(10000))) << "a survivor hangs\n" << job.transcript();
  ended_ms.push_back(milliseconds_since(killed));
  const std::string name = "[" + std::to_string(victim) + "]";
  for (const int rank : first_ranks(4, {victim})) {
    const std::string line = error_of(job, rank);
    const bool is_loss = line.starts_with("init 6 " + name) || line.starts_with("failed 6 " + name);
    const bool is_timeout = line.starts_with("init 8 " + name);
    EXPECT_TRUE(is_loss || (is_timeout && !had_met) || began_too_late(job, line)) << "rank " << rank << ": " << line;
  }
}

class StartKills : public testing::TestWithParam<std::string> {};

TEST_P(StartKills, AtAnyInstantAreNamedToAllAndLeaveNothing) {
  const uint64_t seed = test_seed();
  std::mt19937_64 random(seed);
  const TemporaryFolder folder;
  const double duration_ms = start_duration(GetParam(), folder);
  const milliseconds init_timeout(2000 + static_cast<int>(4 * duration_ms));
  const int instants = is_long() ? 200 : 4;
  std::vector<double> ended_ms;
  for (int i = 0; i < instants && !HasFatalFailure(); ++i) {
    const int victim = static_cast<int>(random() % 4);
    const double instant_ms = duration_ms * (i + static_cast<double>(random() % 1000) / 1000) / instants;
    SCOPED_TRACE(GetParam() + ", CCOM_TEST_SEED=" + std::to_string(seed) + ": rank " + std::to_string(victim) +
                 " killed " + std::to_string(instant_ms) + " of " + std::to_string(duration_ms) +
                 " ms after the start");
    kill_at(GetParam(), folder, victim, instant_ms, init_timeout, ended_ms);
  }
  // Who is killed cannot clean up; the next start does.
  EXPECT_GT(start_duration(GetParam(), folder), 0);
  EXPECT_EQ(folder.list(), "");
  if (!ended_ms.empty())
    std::printf("%s: %zu kills within %.0f ms, all survivors ended after %s\n", GetParam().c_str(), ended_ms.size(),
                duration_ms, summary_of(ended_ms).c_str());
}

INSTANTIATE_TEST_SUITE_P(On, StartKills, testing::Values("shm", "tcp", "ofi", "mixed"), name_of_case);

}  // namespace
}  // namespace ccom
