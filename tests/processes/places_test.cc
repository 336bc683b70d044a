// SPDX-License-Identifier: Apache-2.0
//
// Errors say where every rank of the host was, from which line it called, and since when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const std::string kTrainStep = "places_program.cc:26 \\(train_step\\)";
const std::string kStep = "ranks 0-2 are at " + kTrainStep + " in allreduce #6";

std::string failure_of_late(const std::string& how, const Job::Environment& more = {}) {
  Job job("places_program", 4, {"late", how}, [&](int) { return more; });
  EXPECT_TRUE(job.wait_for("failed", {0, 1, 2}, milliseconds(30000))) << job.transcript();
  const std::string line = job.line(0, "failed");
  EXPECT_EQ(line, job.line(1, "failed"));
  EXPECT_TRUE(line.starts_with("failed 8 [3]")) << line;
  return line;
}

TEST(Places, ATimeoutSaysWhereTheLateRankIsAndSinceWhen) {
  EXPECT_THAT(failure_of_late("place"),
              AllOf(ContainsRegex("rank 3 is at places_program.cc:33 \\(evaluate\\), not in a call, for [0-9.]+ s now"),
                    ContainsRegex(kStep)));
}

TEST(Places, WithoutALocatorItSaysWhereTheLateRankWasLast) {
  EXPECT_THAT(failure_of_late("plain"),
              AllOf(ContainsRegex("rank 3 is not in a call, for [0-9.]+ s now \\(the last one: allreduce #5 at " +
                                  kTrainStep + "\\)"),
                    ContainsRegex(kStep)));
}

TEST(Places, ALocatorThatDoesNotReturnIsWaitedForNoLongerThanPromised) {
  EXPECT_THAT(failure_of_late("stuck"), ContainsRegex("rank 3 is not in a call, for [0-9.]+ s now"));
}

TEST(Places, AreNotSaidWhereTheUserDoesNotWantIt) {
  EXPECT_THAT(failure_of_late("plain", {{"CCOM_CALL_SITES", "0"}}),
              AllOf(ContainsRegex("rank 3 is not in a call, for [0-9.]+ s now \\(the last one: allreduce #5\\)"),
                    HasSubstr("ranks 0-2 are in allreduce #6"), Not(HasSubstr("places_program"))));
}

// What the others say, by rank, after a signal to one amid its calls.
std::vector<std::string> failures_after(int number, int victim, const std::string& transport,
                                        const Job::Environment& more = {}) {
  const std::vector<int> others = first_ranks(4, {victim});
  Job job("places_program", 4, {"stop"}, ranks_on(transport, more));
  EXPECT_TRUE(job.wait_for("ready", first_ranks(4), milliseconds(30000))) << job.transcript();
  job.signal(victim, number);
  EXPECT_TRUE(job.wait_for("failed", others, milliseconds(30000))) << job.transcript();
  std::vector<std::string> lines;
  for (const int rank : others) lines.push_back(job.line(rank, "failed"));
  return lines;
}

TEST(Places, ADeathSaysWhereTheDeadRankWas) {
  const std::string call = "\\(the last one: allreduce #[0-9]+ at " + kTrainStep + "\\)";
  EXPECT_THAT(failures_after(SIGKILL, 2, "shm")[0], ContainsRegex("rank 2 is dead " + call));
}

TEST(Places, AStoppedProcessIsSaidNotToRun) {
  EXPECT_THAT(failures_after(SIGSTOP, 1, "shm", {{"CCOM_DEAD_MS", "2500"}})[0],
              ContainsRegex("rank 1 is .*and the process has not run for [0-9.]+ s"));
}

TEST(PlacesOfHosts, ATimeoutSaysWhereTheLateRankOfAnotherHostIs) {
  Job job("places_program", 4, {"late", "place"}, ranks_on("mixed"));
  ASSERT_TRUE(job.wait_for("failed", {0, 1, 2}, milliseconds(30000))) << job.transcript();
  for (const int rank : {0, 1, 2}) {
    EXPECT_THAT(job.line(rank, "failed"),
                AllOf(ContainsRegex("rank 3 \\(host [^)]+\\) is at places_program.cc:33 \\(evaluate\\), not in a call, "
                                    "for [0-9.]+ s now"),
                      ContainsRegex("ranks 0-2 .*are at " + kTrainStep + " in allreduce #6")));
  }
}

TEST(PlacesOfHosts, AStoppedProcessOfAnotherHostIsSaidNotToRun) {
  const std::vector<std::string> lines = failures_after(SIGSTOP, 3, "mixed", {{"CCOM_DEAD_MS", "2500"}});
  EXPECT_THAT(lines[0], ContainsRegex("rank 3 \\(host [^)]+\\) is .*and the process has not run for [0-9.]+ s"));
  EXPECT_THAT(lines, testing::Each(lines[0]));
}

TEST(PlacesOfHosts, ADeathSaysWhereTheDeadRankOfAnotherHostWas) {
  const std::vector<std::string> lines = failures_after(SIGKILL, 3, "mixed");
  EXPECT_THAT(lines[0],
              ContainsRegex("rank 3 \\(host [^)]+\\) is dead \\(the last one: allreduce #[0-9]+ at places_program"));
  EXPECT_THAT(lines, testing::Each(lines[0]));
}

}  // namespace
}  // namespace ccom
