// SPDX-License-Identifier: Apache-2.0
//
// A rank that ends before the others is known to all of them at once, however it ends and on every transport: nobody
// waits until the timeout. A rank that leaves after the last call of all is no error for anybody. Every way of ending
// is tried with three sizes.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <regex>
#include <thread>

#include "tests/harness/effort.h"
#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

// Far below every timeout, far above what it takes: a loaded machine must not fail the test.
constexpr milliseconds kAtOnce{3000};

struct Ending {
  std::string how;   // see rank_program
  std::string text;  // of the others' error, a regular expression
};
constexpr const char* kWaysOfEnding[] = {"destroy", "finalize", "exit", "throw", "receive"};

// Who ends without having left has died, in whatever way: its host-mates know its process, others its connection. With
// both there, it depends on who notices first.
std::string death_on(const std::string& transport) {
  const std::string by_process = "rank 1 on host .* died \\(pid [0-9]+\\)";
  const std::string by_connection = "rank 1 on host .* died: its control connection to rank [0-9] on host .* ended";
  if (transport == "shm") return by_process;
  return transport == "mixed" ? by_process + "|" + by_connection : by_connection;
}

class Departures : public testing::TestWithParam<std::string> {};

// Rank 1 of 4 ends after its call 5, the others are in call 6. Returns the times until they knew.
std::vector<double> leave(const std::string& transport, const Ending& ending, size_t bytes) {
  std::vector<double> noticed_ms;
  Job job("rank_program", 4, {"leave", ending.how, std::to_string(bytes)}, ranks_on(transport));
  const std::vector<int> others{0, 2, 3};
  EXPECT_TRUE(job.wait_for("left", {1}, milliseconds(60000))) << job.transcript();
  EXPECT_TRUE(job.wait_for("failed", others, kAtOnce)) << ending.how << ", " << bytes << "\n" << job.transcript();
  for (const int rank : others) {
    const std::string line = job.line(rank, "failed");
    EXPECT_TRUE(line.starts_with("failed 6 [1]")) << ending.how << ", " << bytes << ": " << line;
    EXPECT_TRUE(std::regex_search(line, std::regex(ending.text))) << ending.how << ", " << bytes << ": " << line;
    if (transport == "shm") {
      EXPECT_EQ(line, job.line(0, "failed")) << "the errors of a host's ranks differ";
    }
    const auto time = job.when(rank, "failed") - job.when(1, "left");
    noticed_ms.push_back(std::chrono::duration<double, std::milli>(time).count());
  }
  EXPECT_TRUE(job.finish(milliseconds(20000))) << job.transcript();
  return noticed_ms;
}

Ending ending_of(const std::string& how, const std::string& transport) {
  const std::string left = "rank 1 left the communicator after its call 5 while rank [023] ";
  if (how == "receive") return {how, left + "waits for it"};
  return {how, how == "exit" || how == "throw" ? death_on(transport) : left + "is in call 6 \\(allreduce\\)"};
}

class EarlyDepartures : public testing::TestWithParam<std::tuple<std::string, const char*>> {};

TEST_P(EarlyDepartures, AreNamedToAllOthersAtOnce) {
  const auto& [transport, how] = GetParam();
  const Ending ending = ending_of(how, transport);
  std::vector<double> noticed_ms;
  for (const size_t bytes : {size_t{8}, size_t{65536}, size_t{4} << 20}) {
    const std::vector<double> times = leave(transport, ending, bytes);
    noticed_ms.insert(noticed_ms.end(), times.begin(), times.end());
  }
  std::printf("noticed after %s\n", summary_of(noticed_ms).c_str());
}

INSTANTIATE_TEST_SUITE_P(On, EarlyDepartures,
                         testing::Combine(testing::Values("shm", "tcp", "ofi", "mixed"),
                                          testing::ValuesIn(kWaysOfEnding)),
                         [](const auto& on) { return std::get<0>(on.param) + "_" + std::get<1>(on.param); });

TEST_P(Departures, LeavingAfterTheLastCallOfAllIsNoErrorForAnybody) {
  for (const std::string how : {"destroy", "finalize"}) {
    Job job("rank_program", 4, {"end", how}, ranks_on(GetParam()));
    ASSERT_TRUE(job.wait_for("ended", {0, 1, 2, 3}, milliseconds(60000))) << job.transcript();
    for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(job.line(rank, "ended"), "ended 0 ") << how;
    EXPECT_TRUE(job.finish(milliseconds(20000)));
  }
}

// With rank 0 goes what joins the hosts of the other two, where each has its own.
TEST_P(Departures, ARankThatDiesAfterOthersHaveLeftIsNamed) {
  Job job("rank_program", 3, {"outlive"}, ranks_on(GetParam()));
  ASSERT_TRUE(job.wait_for("ready", {0, 1, 2}, milliseconds(60000))) << job.transcript();
  std::this_thread::sleep_for(milliseconds(200));
  job.signal(1, SIGKILL);
  ASSERT_TRUE(job.wait_for("failed", {2}, milliseconds(20000))) << job.transcript();
  EXPECT_TRUE(job.line(2, "failed").starts_with("failed 6 [1]")) << job.line(2, "failed");
  const auto time = job.when(2, "failed") - job.when(2, "ready");
  std::printf("%s: known after %.1f s\n", GetParam().c_str(), std::chrono::duration<double>(time).count() - 0.2);
  job.signal(0, SIGKILL);
  EXPECT_TRUE(job.finish(milliseconds(20000)));
}

INSTANTIATE_TEST_SUITE_P(On, Departures, testing::Values("shm", "tcp", "ofi", "mixed"), name_of_case);

}  // namespace
}  // namespace ccom
