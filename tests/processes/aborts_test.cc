// SPDX-License-Identifier: Apache-2.0
//
// A communicator that is ended in the middle of calls: by ccomCommAbort or ccomCommFinalize in another thread, or by
// ccomCommDestroy. Each returns in bounded time, with a peer stopped and with queued calls too; all ranks learn the
// same, and nobody writes to a buffer whose call has returned. CCOM_TEST_LONG=1: 1,000 random instants per transport
// instead of a few, or CCOM_TEST_POINTS; CCOM_TEST_SEED.
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <random>
#include <thread>

#include "tests/processes/job.h"
#include "tests/processes/rotation.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Generous: a loaded machine must not fail the test. A call whose peer is stopped in the middle of a copy takes a
// second longer than the abort that ended it.
constexpr double kMostMs = 2000;
constexpr milliseconds kMostForCalls{10000};
const std::vector<int> kAll{0, 1, 2, 3};

struct Point {
  std::string how;      // see endless.h
  std::string buffers;  // likewise
  size_t bytes;
  microseconds instant;  // after the third call
  bool is_peer_stopped;  // rank 1, before; it goes on when rank 0's call has ended
  microseconds stopped_for;

  explicit Point(std::mt19937_64& random) {
    how = std::array{"abort", "abort", "queued", "queued", "finalize", "destroy"}[random() % 6];
    buffers = std::array{"mapped", "registered", "ordinary"}[random() % 3];
    bytes = std::array<size_t, 4>{8, 4096, 65536, 2 << 20}[random() % 4];
    instant = microseconds(random() % 30000);
    is_peer_stopped = (how == "abort" || how == "queued") && random() % 2 == 0;
    stopped_for = microseconds(random() % 20000);
  }
  bool is_abort() const { return how == "abort" || how == "queued"; }
  std::string text() const {
    return how + ", " + buffers + " buffers of " + std::to_string(bytes) + " bytes, after " +
           std::to_string(instant.count()) + " us" + (is_peer_stopped ? ", rank 1 is stopped" : "");
  }
};

// What rank 0 is told about the end of its own communicator, and the others about rank 0. When it leaves while others
// on other hosts send and receive, one of these may name another that has given up because of it: sends have no number
// that all ranks share, and rank 0 was the middle of the control tree.
void check_errors(const Job& job, const Point& point, bool is_one_host) {
  const std::string own = point.is_abort() ? "failed 33 [0]" : point.how == "destroy" ? "failed 0 []" : "failed 5 ";
  EXPECT_TRUE(job.line(0, "failed").starts_with(own)) << job.line(0, "failed");
  const std::string others = point.is_abort() ? "failed 33 [0]" : is_one_host ? "failed 6 [0]" : "failed 6 [";
  for (const int rank : {1, 2, 3}) {
    EXPECT_TRUE(job.line(rank, "failed").starts_with(others)) << "rank " << rank << ": " << job.line(rank, "failed");
  }
}

// Adds how long the call took that ended the communicator, in milliseconds.
void end_a_job(const std::string& transport, const Point& point, std::vector<double>& took_ms) {
  Job job(4, {"ended", point.how, point.buffers, std::to_string(point.bytes)},
          [&](int rank) { return environment_for(transport, rank); });
  ASSERT_TRUE(job.wait_for("ready", kAll, milliseconds(60000))) << job.transcript();
  std::this_thread::sleep_for(point.instant);
  if (point.is_peer_stopped) {
    job.signal(1, SIGSTOP);
    std::this_thread::sleep_for(point.stopped_for);
  }
  job.signal(0, SIGUSR1);
  ASSERT_TRUE(job.wait_for("returned", {0}, kMostForCalls)) << job.transcript();
  ASSERT_TRUE(job.wait_for("stopped", {0}, kMostForCalls)) << job.transcript();
  if (point.is_peer_stopped) job.signal(1, SIGCONT);
  ASSERT_TRUE(job.wait_for("failed", kAll, kMostForCalls)) << job.transcript();
  took_ms.push_back(std::stod(job.line(0, "returned").substr(9)) / 1000);
  EXPECT_LT(took_ms.back(), kMostMs);
  check_errors(job, point, transport == "shm");
  for (const int rank : kAll) EXPECT_EQ(job.line(rank, "overwritten"), "") << "rank " << rank;
  EXPECT_TRUE(job.finish(kMostForCalls)) << "a rank hangs at its end";
}

class Ending : public testing::TestWithParam<std::string> {};

TEST_P(Ending, AtAnyInstantReturnsInTimeAndIsToldToAll) {
  const uint64_t seed = test_seed();
  std::mt19937_64 random(seed);
  std::vector<double> took_ms;
  const size_t times = count_from("CCOM_TEST_POINTS", 12, 1000);
  for (size_t i = 0; i < times && !HasFatalFailure(); ++i) {
    const Point point(random);
    SCOPED_TRACE("CCOM_TEST_SEED=" + std::to_string(seed) + ", round " + std::to_string(i) + ": " + point.text());
    end_a_job(GetParam(), point, took_ms);
  }
  if (!took_ms.empty())
    std::printf("%s: %zu ended, returned after %s\n", GetParam().c_str(), took_ms.size(), summary_of(took_ms).c_str());
}

INSTANTIATE_TEST_SUITE_P(On, Ending, testing::Values("shm", "tcp", "ofi", "mixed"),
                         [](const auto& on) { return on.param; });

}  // namespace
}  // namespace ccom
