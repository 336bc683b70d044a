// SPDX-License-Identifier: Apache-2.0
//
// Eight real processes whose communicator changes all the time (changing_program.cc): random splits, ranks that are
// left out by name or end suddenly, and come back as new processes, between 2 and 8 ranks, on one host and on several.
// Every call is checked; descriptors, threads and memory stay flat. For some seconds; CCOM_TEST_LONG=1: ten minutes.
// CCOM_TEST_SECONDS: another time; CCOM_TEST_SEED.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "tests/harness/effort.h"
#include "tests/harness/folder.h"
#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

constexpr int kRanks = 8;

class Changing : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Transports, Changing, testing::Values("shm", "mixed", "tcp"), name_of_case);

TEST_P(Changing, LeavesNothingBehind) {
  const auto seconds = static_cast<long long>(count_from("CCOM_TEST_SECONDS", 6, 600));
  const std::string seed = std::to_string(test_seed() % 1'000'000);
  SCOPED_TRACE("CCOM_TEST_SEED=" + seed);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const long long until = std::chrono::duration_cast<std::chrono::seconds>(now).count() + seconds;
  const TemporaryFolder folder;
  Job job("changing_program", kRanks, {folder.path(), std::to_string(until), seed}, ranks_on(GetParam()));
  EXPECT_TRUE(job.finish(std::chrono::milliseconds(seconds * 1000 + 120'000))) << "a rank hangs\n" << job.transcript();
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_NE(job.line(rank, "done"), "");
    EXPECT_EQ(job.line(rank, "grew") + job.line(rank, "wrong") + job.line(rank, "failed"), "");
    std::printf("%s, rank %d: %s\n", GetParam().c_str(), rank, job.line(rank, "done").c_str());
  }
  if (HasFailure()) std::printf("%s", job.transcript().c_str());
}

}  // namespace
}  // namespace ccom
