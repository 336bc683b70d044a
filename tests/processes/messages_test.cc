// SPDX-License-Identifier: Apache-2.0
//
// A killed rank ends the messages of all others, which name it; whether they wait or not.
#include <gtest/gtest.h>

#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

void kill_one_of_four(const std::string& way, const std::vector<std::string>& arguments, int victim) {
  Job job("rank_program", 4, arguments, ranks_on(way));
  ASSERT_TRUE(job.wait_for("ready", first_ranks(4), milliseconds(60000))) << way << "\n" << job.transcript();
  job.kill(victim);
  expect_named(job, first_ranks(4, {victim}), victim, way);
}

class KilledRank : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Over, KilledRank, testing::Values("shm", "tcp", "ofi", "mixed"));

TEST_P(KilledRank, IsNamedByMessagesUnderWay) {
  for (const std::string bytes : {"8", "100000", "8000000"}) kill_one_of_four(GetParam(), {"messages", bytes}, 2);
}

TEST_P(KilledRank, IsNamedThoughNobodyWaits) {
  for (int victim = 0; victim < 4; ++victim) kill_one_of_four(GetParam(), {"lonely"}, victim);
}

}  // namespace
}  // namespace ccom
