// SPDX-License-Identifier: Apache-2.0
//
// Real processes that go on after kill -9: allreduces and splits without end, a kill at a random time, ccomCommShrink,
// and 100 checked calls on what is left. All survivors have the same ranks, nothing is wrong, nothing hangs: after one
// death, two at once, of the rank that the others meet at, and further ones while the survivors shrink.
// CCOM_TEST_LONG=1: 300 kills and 100 of each other kind, or CCOM_TEST_POINTS; CCOM_TEST_SEED.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "tests/harness/effort.h"
#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// A rank, and how long after the kill before.
struct Kill {
  int victim = 0;
  microseconds pause{};
};

// Adds the time from the last kill to the first call of all that are left.
void kill_in_a_job(const std::string& transport, int ranks, size_t bytes, const std::vector<Kill>& kills,
                   std::vector<double>& took_ms) {
  // Longer than the test waits: nobody is found by its silence.
  Job job("rank_program", ranks, {"shrink", std::to_string(bytes)}, ranks_on(transport, {{"CCOM_DEAD_MS", "60000"}}));
  ASSERT_TRUE(job.wait_for("ready", first_ranks(ranks), milliseconds(60000))) << job.transcript();
  std::vector<int> left = first_ranks(ranks);
  for (const Kill& kill : kills) {
    std::this_thread::sleep_for(kill.pause);
    job.kill(kill.victim);
    std::erase(left, kill.victim);
  }
  const auto killed = Clock::now();
  ASSERT_TRUE(job.wait_for("goes_on " + list(left), left, milliseconds(30000))) << job.transcript();
  double longest_ms = 0;
  for (const int rank : left) {
    EXPECT_EQ(job.line(rank, "wrong"), "");
    EXPECT_EQ(job.line(rank, "failed"), "");
    const auto when = job.when(rank, "left " + list(left));
    longest_ms = std::max(longest_ms, std::chrono::duration<double, std::milli>(when - killed).count());
  }
  took_ms.push_back(longest_ms);
}

class Survivors : public testing::TestWithParam<std::string> {
 protected:
  template <typename Deaths>
  static void kill_in_jobs(const char* what, int ranks, size_t times, Deaths deaths);
};
INSTANTIATE_TEST_SUITE_P(Transports, Survivors, testing::Values("shm", "mixed", "tcp", "mixed-tls"), name_of_case);

// deaths: makes those of a job.
template <typename Deaths>
void Survivors::kill_in_jobs(const char* what, int ranks, size_t times, Deaths deaths) {
  const uint64_t seed = test_seed();
  std::mt19937_64 random(seed);
  std::vector<double> took_ms;
  for (size_t i = 0; i < times; ++i) {
    const size_t bytes = std::array<size_t, 3>{8, 65536, 1 << 20}[random() % 3];
    const std::vector<Kill> kills = deaths(random);
    SCOPED_TRACE("CCOM_TEST_SEED=" + std::to_string(seed) + ", round " + std::to_string(i) + ", " +
                 std::to_string(bytes) + " bytes");
    kill_in_a_job(GetParam(), ranks, bytes, kills, took_ms);
    if (testing::Test::HasFatalFailure()) return;
  }
  std::printf("%s, %s, %d ranks: %zu jobs, first call of all that are left after %s\n", GetParam().c_str(), what, ranks,
              times, summary_of(took_ms).c_str());
}

microseconds any_time(std::mt19937_64& random) { return microseconds(1000 + random() % 30000); }

TEST_P(Survivors, OfOneDeathGoOn) {
  for (const int ranks : {4, 8}) {
    kill_in_jobs("one death", ranks, count_from("CCOM_TEST_POINTS", 6, 300), [ranks](auto& random) {
      return std::vector<Kill>{{static_cast<int>(random() % static_cast<unsigned>(ranks)), any_time(random)}};
    });
    if (HasFatalFailure()) return;
  }
}

TEST_P(Survivors, OfTwoDeathsAtOnceGoOn) {
  kill_in_jobs("two at once", 8, count_from("CCOM_TEST_POINTS", 3, 100), [](auto& random) {
    const int first = static_cast<int>(random() % 8);
    return std::vector<Kill>{{first, any_time(random)}, {(first + 1 + static_cast<int>(random() % 7)) % 8, {}}};
  });
}

// The first rank that is left makes the id by which the others meet.
TEST_P(Survivors, OfTheRankThatTheyMeetAtGoOn) {
  kill_in_jobs("the first rank, while it is met", 4, count_from("CCOM_TEST_POINTS", 4, 100), [](auto& random) {
    const auto soon = [&] { return microseconds(random() % 25000); };
    return std::vector<Kill>{{3, any_time(random)}, {0, soon()}};
  });
}

TEST_P(Survivors, OfThreeDeathsInTheMiddleOfShrinkingGoOn) {
  kill_in_jobs("three, while the others shrink", 8, count_from("CCOM_TEST_POINTS", 4, 100), [](auto& random) {
    std::vector<int> victims = first_ranks(8);
    std::ranges::shuffle(victims, random);
    const auto soon = [&] { return microseconds(random() % 20000); };
    return std::vector<Kill>{{victims[0], any_time(random)}, {victims[1], soon()}, {victims[2], soon()}};
  });
}

// It is left out like a dead one, and is told so when it comes back.
TEST_P(Survivors, OfASilentRankGoOn) {
  Job job("rank_program", 3, {"shrink", "65536"}, ranks_on(GetParam(), {{"CCOM_DEAD_MS", "600"}}));
  ASSERT_TRUE(job.wait_for("ready", first_ranks(3), milliseconds(60000))) << job.transcript();
  job.signal(1, SIGSTOP);
  ASSERT_TRUE(job.wait_for("goes_on [0,2]", {0, 2}, milliseconds(30000))) << job.transcript();
  job.signal(1, SIGCONT);
  ASSERT_TRUE(job.wait_for("failed", {1}, milliseconds(30000))) << job.transcript();
  EXPECT_NE(job.line(1, "failed").find("have gone on without rank 1"), std::string::npos) << job.line(1, "failed");
  EXPECT_EQ(job.line(0, "failed") + job.line(2, "failed"), "");
}

}  // namespace
}  // namespace ccom
