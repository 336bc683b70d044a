// SPDX-License-Identifier: Apache-2.0
//
// Nobody writes to a buffer after the call that it was given to has returned with an error: not even a process that was
// stopped in the middle of a copy and goes on later.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <random>
#include <thread>

#include "tests/harness/effort.h"
#include "tests/harness/processes.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

// One rank of two is stopped at any time of any call; the other one declares it dead and fills its buffer. Some are
// stopped in the middle of a copy into a buffer of the other, where others can map it; it goes on until one was.
void stop_one_of_two(const std::string& how, size_t bytes, uint64_t seed) {
  const bool is_shared = how != "ordinary";
  const int times = is_long() ? 60 : 3;
  constexpr int kMostTimes = 60;
  std::mt19937_64 random(seed);
  int stopped_within = 0;
  int i = 0;
  for (; i < times || (is_shared && stopped_within == 0 && i < kMostTimes); ++i) {
    Job job("rank_program", 2, {"canary", how, std::to_string(bytes)}, [](int) {
      return Job::Environment{{"CCOM_DEAD_MS", "500"}, {"CCOM_LOG", "warn"}};
    });
    ASSERT_TRUE(job.wait_for("ready", {0, 1}, milliseconds(60000))) << job.transcript();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30000));
    job.signal(1, SIGSTOP);
    ASSERT_TRUE(job.wait_for("failed", {0}, milliseconds(30000))) << "seed " << seed << job.transcript();
    EXPECT_EQ(job.line(0, "failed"), "failed 6");
    job.signal(1, SIGCONT);
    ASSERT_TRUE(job.wait_for("failed", {1}, milliseconds(30000))) << job.transcript();
    EXPECT_TRUE(job.wait_for("kept", {0, 1}, milliseconds(30000)))
        << how << ", round " << i << ", seed " << seed << "\n"
        << job.transcript();
    stopped_within += job.transcript().find("has not answered for a second") != std::string::npos ? 1 : 0;
    ASSERT_TRUE(job.finish(milliseconds(20000))) << job.transcript();
  }
  EXPECT_EQ(stopped_within > 0, is_shared) << how;
  std::printf("%s: %d of %d processes were stopped in the middle of a copy\n", how.c_str(), stopped_within, i);
}

TEST(LateWrites, OfAStoppedProcessDoNotReachMappedBuffers) { stop_one_of_two("mapped", 64 << 20, 1); }
TEST(LateWrites, OfAStoppedProcessDoNotReachRegisteredBuffers) { stop_one_of_two("registered", 64 << 20, 2); }
TEST(LateWrites, OfAStoppedProcessDoNotReachOrdinaryBuffers) { stop_one_of_two("ordinary", 64 << 20, 3); }

}  // namespace
}  // namespace ccom
