// SPDX-License-Identifier: Apache-2.0
//
// Two versions of the library in one job. This program links another this_build(), so that each rank, a thread here,
// says what it likes.
#include "bootstrap/this_build.h"

#include <atomic>

#include "tests/bootstrap/test_rendezvous.h"

namespace ccom {
namespace {
thread_local std::string build = "ccom 1.0 (sources 111111111111)";
}

std::string this_build() { return build; }

namespace testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Builds, ThatDifferAreAnErrorOfAllRanksThatNamesBoth) {
  for (const Rank odd : {0, 2}) {
    const TestServer hosted = start_test_server();
    std::atomic<int> joined = 0;
    run_ranks(3, [&](Rank rank) {
      if (rank == odd) build = "ccom 1.0 (sources 222222222222)";
      const auto met = connect_rendezvous(hosted.id, 3, rank, soon());
      const Status failure = met ? error_of((*met)->all_gather("hosts", "part", soon())) : met.error();
      EXPECT_EQ(failure.code(), Code::ConfigError) << failure.message();
      EXPECT_THAT(failure.message(),
                  AllOf(HasSubstr("ccom 1.0 (sources 111111111111)"), HasSubstr("rank " + std::to_string(odd) + " "),
                        HasSubstr("ccom 1.0 (sources 222222222222)")));
      EXPECT_THAT(failure.cure(), HasSubstr("same version"));
      ++joined;
    });
    EXPECT_EQ(joined, 3);
  }
}

// A version from before builds were compared says nothing.
TEST(Builds, OfAnOlderVersionAreToldByTheServer) {
  const TestServer hosted = start_test_server();
  run_ranks(2, [&](Rank rank) {
    if (rank == 1) build.clear();
    const auto met = connect_rendezvous(hosted.id, 2, rank, soon());
    const Status failure = met ? error_of((*met)->all_gather("hosts", "part", soon())) : met.error();
    EXPECT_THAT(failure.message(), HasSubstr("an older version of ccom")) << "rank " << rank;
  });
}

}  // namespace
}  // namespace testing
}  // namespace ccom
