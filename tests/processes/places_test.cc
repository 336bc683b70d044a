// SPDX-License-Identifier: Apache-2.0
//
// Errors say where every rank of the host was, from which line it called, and since when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/processes.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kStep = "ranks 0-2 are at places_program.cc:29 \\(train_step\\) in allreduce #6";

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
              AllOf(ContainsRegex("rank 3 is not in a call, for [0-9.]+ s now \\(the last one: allreduce #5 at "
                                  "places_program.cc:29 \\(train_step\\)\\)"),
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

TEST(Places, ADeathSaysWhereTheDeadRankWas) {
  Job job("places_program", 4, {"stop"}, [](int) { return Job::Environment(); });
  ASSERT_TRUE(job.wait_for("ready", {0, 1, 2, 3}, milliseconds(30000))) << job.transcript();
  job.kill(2);
  ASSERT_TRUE(job.wait_for("failed", {0, 1, 3}, milliseconds(30000))) << job.transcript();
  const char* const call = "\\(the last one: allreduce #[0-9]+ at places_program.cc:29 \\(train_step\\)\\)";
  EXPECT_THAT(job.line(0, "failed"), ContainsRegex(std::string("rank 2 is dead ") + call));
}

TEST(Places, AStoppedProcessIsSaidNotToRun) {
  Job job("places_program", 4, {"stop"}, [](int) { return Job::Environment{{"CCOM_DEAD_MS", "2500"}}; });
  ASSERT_TRUE(job.wait_for("ready", {0, 1, 2, 3}, milliseconds(30000))) << job.transcript();
  job.signal(1, SIGSTOP);
  ASSERT_TRUE(job.wait_for("failed", {0, 2, 3}, milliseconds(30000))) << job.transcript();
  EXPECT_THAT(job.line(0, "failed"), ContainsRegex("rank 1 is .*and the process has not run for [0-9.]+ s"));
}

// Ranks 0 and 1 on host a, 2 and 3 on host b.
Job::Environment on_two_hosts(int rank, Job::Environment more = {}) {
  more["CCOM_HOSTID"] = rank < 2 ? "a" : "b";
  return more;
}

TEST(PlacesOfHosts, ATimeoutSaysWhereTheLateRankOfAnotherHostIs) {
  Job job("places_program", 4, {"late", "place"}, [](int rank) { return on_two_hosts(rank); });
  ASSERT_TRUE(job.wait_for("failed", {0, 1, 2}, milliseconds(30000))) << job.transcript();
  for (const int rank : {0, 1, 2}) {
    EXPECT_THAT(job.line(rank, "failed"),
                AllOf(ContainsRegex("rank 3 \\(host [^)]+\\) is at places_program.cc:33 \\(evaluate\\), not in a call, "
                                    "for [0-9.]+ s now"),
                      ContainsRegex("ranks 0-2 .*are at places_program.cc:29 \\(train_step\\) in allreduce #6")));
  }
}

TEST(PlacesOfHosts, AStoppedProcessOfAnotherHostIsSaidNotToRun) {
  Job job("places_program", 4, {"stop"}, [](int rank) { return on_two_hosts(rank, {{"CCOM_DEAD_MS", "2500"}}); });
  ASSERT_TRUE(job.wait_for("ready", {0, 1, 2, 3}, milliseconds(30000))) << job.transcript();
  job.signal(3, SIGSTOP);
  ASSERT_TRUE(job.wait_for("failed", {0, 1, 2}, milliseconds(30000))) << job.transcript();
  const std::string line = job.line(0, "failed");
  EXPECT_THAT(line, ContainsRegex("rank 3 \\(host [^)]+\\) is .*and the process has not run for [0-9.]+ s"));
  EXPECT_EQ(line, job.line(1, "failed"));
  EXPECT_EQ(line, job.line(2, "failed"));
}

TEST(PlacesOfHosts, ADeathSaysWhereTheDeadRankOfAnotherHostWas) {
  Job job("places_program", 4, {"stop"}, [](int rank) { return on_two_hosts(rank); });
  ASSERT_TRUE(job.wait_for("ready", {0, 1, 2, 3}, milliseconds(30000))) << job.transcript();
  job.kill(3);
  ASSERT_TRUE(job.wait_for("failed", {0, 1, 2}, milliseconds(30000))) << job.transcript();
  const std::string line = job.line(0, "failed");
  EXPECT_THAT(line,
              ContainsRegex("rank 3 \\(host [^)]+\\) is dead \\(the last one: allreduce #[0-9]+ at places_program"));
  EXPECT_EQ(line, job.line(1, "failed"));
  EXPECT_EQ(line, job.line(2, "failed"));
}

}  // namespace
}  // namespace ccom
