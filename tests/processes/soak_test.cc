// SPDX-License-Identifier: Apache-2.0
//
// Random collectives by four real processes, with three threads and communicators each, against the oracle of
// ccom-bench: all collectives, types and operators, 0 to 64 MiB, unaligned, in place, in ordinary, mapped and
// registered memory, on streams, in groups, on parts of communicators. On one transport a day for ten seconds;
// CCOM_TEST_LONG=1: on all, ten minutes each. CCOM_SOAK_SECONDS: another time; CCOM_SOAK_SEED: the seed of a failure,
// which repeats its calls; CCOM_SOAK_TRANSPORT: this one alone.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/processes/job.h"
#include "tests/processes/rotation.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

constexpr int kRanks = 4;
constexpr int kThreads = 3;
constexpr const char* kTransports[] = {"shm", "tcp", "ofi", "mixed"};

void soak(const std::string& transport) {
  const size_t seconds = count_from("CCOM_SOAK_SECONDS", 10, 600);
  const auto day = static_cast<size_t>(test_day());
  const std::string seed = std::to_string(count_from("CCOM_SOAK_SEED", day, day));
  const size_t most_bytes = is_long() ? size_t{64} << 20 : size_t{4} << 20;
  SCOPED_TRACE(transport + ", seed " + seed + ", " + std::to_string(most_bytes) + " bytes at most");
  Job job(kRanks, {seed, std::to_string(seconds), std::to_string(most_bytes), std::to_string(kThreads)},
          [&](int rank) { return environment_for(transport, rank); });
  EXPECT_TRUE(job.finish(milliseconds(seconds * 1000 + 180'000))) << "a rank hangs\n" << job.transcript();
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string& line = job.line(rank, "done");
    EXPECT_TRUE(line.ends_with(" 0")) << job.line(rank, "wrong") << job.line(rank, "failed");
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

TEST(Soak, OfRandomCollectivesGivesNoWrongResult) {
  const char* const chosen = std::getenv("CCOM_SOAK_TRANSPORT");
  for (size_t i = 0; i < std::size(kTransports); ++i) {
    const bool is_due = is_long() || i == static_cast<size_t>(test_day()) % std::size(kTransports);
    if (chosen != nullptr ? chosen == std::string(kTransports[i]) : is_due) soak(kTransports[i]);
  }
}

}  // namespace
}  // namespace ccom
