// SPDX-License-Identifier: Apache-2.0
//
// A rank that dies while the calls of a new communicator find out how they run fastest is named to all survivors, and
// nobody else is, in whichever of the first calls it dies.
#include <gtest/gtest.h>

#include <array>

#include "tests/harness/effort.h"
#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

constexpr int kCalls = 60;  // by then several ways have been tried
constexpr int kCallsOfACase = 6;
constexpr std::array kCollectives = {"allreduce", "allgather", "reduce_scatter", "broadcast", "alltoall"};
constexpr std::array kBytes = {"65536", "1048576", "20000"};

struct Kill {
  int ranks, victim, number, percent;
  std::string collective, buffers, bytes;

  std::string text() const {
    return "rank " + std::to_string(victim) + " of " + std::to_string(ranks) + " in call " + std::to_string(number) +
           " (" + collective + ", " + buffers + " memory, " + bytes + " bytes), after " + std::to_string(percent) +
           " % of a call";
  }
};

Kill kill_in(int number, int ranks, const std::string& buffers, uint64_t chance) {
  return {.ranks = ranks,
          .victim = static_cast<int>(chance % static_cast<uint64_t>(ranks)),
          .number = number,
          .percent = static_cast<int>(chance / 16 % 120),
          .collective = kCollectives[chance / 2048 % kCollectives.size()],
          .buffers = buffers,
          .bytes = kBytes[chance / 65536 % kBytes.size()]};
}

// Adds what the survivors say about whom.
void make(const Kill& kill, int& named) {
  const std::vector<std::string> arguments{"dies",
                                           kill.collective,
                                           kill.buffers,
                                           kill.bytes,
                                           std::to_string(kill.victim),
                                           std::to_string(kill.number),
                                           std::to_string(kill.percent)};
  Job job("rank_program", kill.ranks, arguments, [](int) { return Job::Environment(); });
  const std::vector<int> survivors = first_ranks(kill.ranks, {kill.victim});
  ASSERT_TRUE(job.wait_for("", survivors, milliseconds(60000))) << job.transcript();
  const std::string blame = " 6 [" + std::to_string(kill.victim) + "] ";
  for (const int rank : survivors) {
    const std::string line = job.line(rank, "");
    // In the first call: that rank may not have heard yet that all have started.
    EXPECT_TRUE(line.starts_with("failed" + blame) || (kill.number == 1 && line.starts_with("init" + blame))) << line;
    ++named;
  }
  EXPECT_EQ(job.line(kill.victim, ""), "") << "the dead one had something to say";
  ASSERT_TRUE(job.finish(milliseconds(10000))) << "a survivor hangs at its end";
}

// Ranks, memory, and the first of the calls.
class KilledWhileTuning : public testing::TestWithParam<std::tuple<int, const char*, int>> {};

TEST_P(KilledWhileTuning, IsNamedToAllSurvivorsInWhicheverCall) {
  const auto& [ranks, buffers, first] = GetParam();
  const uint64_t seed = test_seed();
  std::mt19937_64 random(seed + static_cast<uint64_t>(ranks * kCalls + first));
  int named = 0;
  for (int number = first; number < first + kCallsOfACase; ++number) {
    const Kill kill = kill_in(number, ranks, buffers, random());
    SCOPED_TRACE("CCOM_TEST_SEED=" + std::to_string(seed) + ": " + kill.text());
    make(kill, named);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(named, kCallsOfACase * (ranks - 1));
}

using Calls = testing::TestParamInfo<KilledWhileTuning::ParamType>;
std::string name_of_calls(const Calls& of) {
  const auto& [ranks, buffers, first] = of.param;
  return std::to_string(ranks) + "_ranks_" + buffers + "_from_" + std::to_string(first);
}
INSTANTIATE_TEST_SUITE_P(In, KilledWhileTuning,
                         testing::Combine(testing::Values(2, 3, 4), testing::Values("ordinary", "mapped"),
                                          testing::Range(1, kCalls + 1, kCallsOfACase)),
                         name_of_calls);

}  // namespace
}  // namespace ccom
