// SPDX-License-Identifier: Apache-2.0
//
// Processes that end, without leaving the communicator, as soon as a call has returned an error or they have aborted:
// all ranks get that error, and none takes the end of a process for its cause. Each way a few times; CCOM_TEST_LONG=1:
// more often, or CCOM_TEST_POINTS times.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/effort.h"
#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

constexpr int kRanks = 4;
constexpr milliseconds kAtMost{60000};  // start-up included

class Vanishing : public testing::TestWithParam<std::string> {};

void run(const std::string& transport, const std::string& how, const std::vector<int>& who,
         const std::string& expected) {
  Job job("rank_program", kRanks, {"vanish", how}, ranks_on(transport));
  ASSERT_TRUE(job.wait_for("failed", who, kAtMost)) << how << "\n" << job.transcript();
  for (const int rank : who) {
    EXPECT_NE((job.line(rank, "failed") + "\n").find(expected), std::string::npos)
        << how << ": rank " << rank << " has another error\n"
        << job.transcript();
  }
  EXPECT_TRUE(job.finish(kAtMost)) << "a rank hangs at its end";
}

TEST_P(Vanishing, AtAnErrorIsTakenForItsCauseByNobody) {
  for (size_t round = 0; round < count_from("CCOM_TEST_POINTS", 6, 60); ++round)
    run(GetParam(), "mismatch", {0, 1, 2, 3}, "ranks made different calls: rank ");
}

TEST_P(Vanishing, AfterAnAbortHidesItFromNobody) {
  for (size_t round = 0; round < count_from("CCOM_TEST_POINTS", 6, 60); ++round)
    run(GetParam(), "abort", {0, 2, 3}, "failed 33 [1] ");
}

// The text named none, and the error info no peer: which of a thousand ranks has that limit?
TEST(LocalFailure, OfARankNamesItToAll) { run("shm", "limit", {0, 1, 2, 3}, " [1] ccomAllReduce: rank 1: "); }

INSTANTIATE_TEST_SUITE_P(On, Vanishing, testing::Values("shm", "tcp", "ofi", "mixed"), name_of_case);

}  // namespace
}  // namespace ccom
