// SPDX-License-Identifier: Apache-2.0
//
// Users' operators in real processes, over shared memory, tcp, libfabric and several hosts: maps that do not commute
// are composed in the order of the ranks, sums are sums; a function that returns an error, that throws, or whose
// process dies in the middle of it, ends the call on all ranks, with the rank and the reason.
#include <gtest/gtest.h>

#include <utility>

#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

class Operators : public testing::TestWithParam<std::string> {
 protected:
  // All ranks but `odd` if it dies: the same code, rank and reason.
  static void expect_failure(const std::string& way, int odd, size_t count, const std::string& start,
                             const std::string& reason) {
    constexpr int kRanks = 4;
    Job job("operators_program", kRanks, {way, std::to_string(odd), std::to_string(count)}, ranks_on(GetParam()));
    const std::vector<int> hearing = first_ranks(kRanks, {way == "dies" ? odd : -1});
    ASSERT_TRUE(job.wait_for("failed", hearing, milliseconds(20000))) << job.transcript();
    EXPECT_TRUE(job.finish(milliseconds(20000))) << job.transcript();
    for (const int rank : hearing) {
      EXPECT_THAT(job.line(rank, "failed"), testing::AllOf(testing::StartsWith(start), testing::HasSubstr(reason)));
      EXPECT_EQ(job.line(rank, "final"), "final") << job.transcript();
    }
  }
};

TEST_P(Operators, KeepTheOrderOfRanksAndSum) {
  for (const auto& [nranks, most] : {std::pair{4, "60013"}, std::pair{7, "300"}}) {
    Job job("operators_program", nranks, {"once", most}, ranks_on(GetParam()));
    EXPECT_TRUE(job.wait_for("right", first_ranks(nranks), milliseconds(60000))) << job.transcript();
    EXPECT_TRUE(job.finish(milliseconds(10000)));
  }
}

TEST_P(Operators, ThatReturnAnErrorEndTheCallOnAllRanks) {
  expect_failure("returns", 0, 1, "failed 39 [0] ", "rank 0: user operator 1 returned 5");
  expect_failure("returns", 2, 100003, "failed 39 [2] ", "rank 2: user operator 1 returned 5");
}

TEST_P(Operators, ThatThrowEndTheCallOnAllRanks) {
  expect_failure("throws", 3, 1, "failed 39 [3] ", "rank 3: user operator 1 threw an exception: no such map");
}

TEST_P(Operators, WhoseProcessDiesInThemAreNamedToAllOthers) {
  if (GetParam() != "ofi") expect_failure("dies", 2, 1, "failed 6 [2] ", "rank 2");  // a death takes seconds there
  expect_failure("dies", 0, 100003, "failed 6 [0] ", "rank 0");
}

INSTANTIATE_TEST_SUITE_P(Over, Operators, testing::Values("shm", "tcp", "ofi", "mixed", "tcp-on-one-host"),
                         name_of_case);

}  // namespace
}  // namespace ccom
