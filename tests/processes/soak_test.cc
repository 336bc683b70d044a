// SPDX-License-Identifier: Apache-2.0
//
// Random collectives by four real processes, with three threads and communicators each, against the oracle of
// ccom-bench: all collectives, types and operators, 0 to 64 MiB, unaligned, in place, in ordinary, mapped and
// registered memory, on streams, in groups, on parts of communicators, with messages between them. For ten seconds,
// over ofi for 40; CCOM_TEST_LONG=1: ten minutes. CCOM_TEST_SECONDS: another time; CCOM_TEST_SEED: the seed of a
// failure, which repeats its calls.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/harness/effort.h"
#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

constexpr int kRanks = 4;
constexpr int kThreads = 3;

class Soak : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(On, Soak, testing::Values("shm", "tcp", "ofi", "mixed"), name_of_case);

TEST_P(Soak, OfRandomCollectivesGivesNoWrongResult) {
  const std::string& transport = GetParam();
  // Over ofi memory still grows after five seconds, and no more after twenty.
  const size_t seconds = count_from("CCOM_TEST_SECONDS", transport == "ofi" ? 40 : 10, 600);
  const std::string seed = std::to_string(test_seed() % 1'000'000);
  const size_t most_bytes = is_long() ? size_t{64} << 20 : size_t{4} << 20;
  SCOPED_TRACE(transport + ", seed " + seed + ", " + std::to_string(most_bytes) + " bytes at most");
  Job job("soak_program", kRanks, {seed, std::to_string(seconds), std::to_string(most_bytes), std::to_string(kThreads)},
          ranks_on(transport));
  EXPECT_TRUE(job.finish(milliseconds(seconds * 1000 + 180'000))) << "a rank hangs\n" << job.transcript();
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string& line = job.line(rank, "done");
    EXPECT_TRUE(line.ends_with(" 0")) << job.line(rank, "wrong") << job.line(rank, "failed");
    EXPECT_EQ(job.line(rank, "grew"), "");
    unsigned long long calls = 0, bytes = 0, wrong = 0;
    EXPECT_EQ(std::sscanf(line.c_str(), "done %llu %llu %llu", &calls, &bytes, &wrong), 3);
    EXPECT_GT(calls, 100u);
    if (rank == 0) {
      std::printf("%s, seed %s: %llu calls, %.1f GB, %llu wrong\n", transport.c_str(), seed.c_str(), calls,
                  static_cast<double>(bytes) / 1e9, wrong);
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace ccom
