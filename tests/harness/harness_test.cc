// SPDX-License-Identifier: Apache-2.0
//
// What tests rely on: a rank that fails, hangs or dies is named, ends the test, and leaves nothing behind.
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "tests/harness/child.h"
#include "tests/harness/environment.h"
#include "tests/harness/folder.h"
#include "tests/harness/processes.h"
#include "tests/harness/threads.h"
#include "tests/harness/world.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{60000};

TEST(RunRanks, NamesTheRankThatFails) {
  EXPECT_NONFATAL_FAILURE_ON_ALL_THREADS(run_ranks(3, [](int rank) { EXPECT_NE(rank, 1); }), "rank 1");
  EXPECT_NONFATAL_FAILURE_ON_ALL_THREADS(run_ranks(3,
                                                   [](int rank) {
                                                     if (rank == 2) throw std::runtime_error("thrown");
                                                   }),
                                         "exception: thrown");
}

TEST(RunRanksDeathTest, SaysWhereARankHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hang = [](int rank) {
    if (rank == 1) ::pause();
  };
  EXPECT_DEATH(run_ranks(2, hang, milliseconds(50)), "rank 1 of 2 has not ended after 50 ms; it is at(.|\n)*pause");
}

// The other one would wait for a minute.
TEST(WithRanks, AbortsWhereAnAssertFails) {
  static ccomResult_t result = ccomSuccess;
  static const RankBody call = [](int rank, ccomComm_t comm) {
    ASSERT_NE(rank, 1) << "does not come";
    result = ccomBarrier(comm, nullptr);
  };
  EXPECT_FATAL_FAILURE_ON_ALL_THREADS(with_ranks({.hosts = {0, 1}}, call), "does not come");
  EXPECT_EQ(result, ccomAborted);
}

TEST(Child, SaysHowItHasEnded) {
  EXPECT_EQ(exit_of([] { return 7; }), 7);
  EXPECT_EQ(exit_of([] { return ::raise(SIGKILL); }), 128 + SIGKILL);
  EXPECT_EQ(exit_of(::pause, 1), 128 + SIGALRM);
  EXPECT_FALSE(holds_in_child([] { return false; }));
}

TEST(Child, SendsAndReceives) {
  Child child([](const PacketSocket& parent) {
    parent.send(parent.receive() + " back");
    parent.send_value(2.5);
    return 0;
  });
  child.send("there and");
  EXPECT_EQ(child.receive(), "there and back");
  EXPECT_EQ(child.receive_value<double>(), 2.5);
  EXPECT_EQ(child.receive(), "") << "it has ended";
  EXPECT_EQ(child.wait(), 0);
}

TEST(Job, TellsLinesOfRanksAndWhoSaysNoMore) {
  pid_t last = 0;
  {
    Job job("/bin/sh", 3, {"-c", "echo rank $CCOM_RANK of $CCOM_NRANKS; test $CCOM_RANK = 1 || exec sleep 600"},
            [](int) { return Job::Environment(); });
    ASSERT_TRUE(job.wait_for("rank", {0, 1, 2}, kPatience)) << job.transcript();
    EXPECT_EQ(job.line(2, "rank"), "rank 2 of 3");
    EXPECT_FALSE(job.wait_for("more", {1}, kPatience)) << "it has ended";
    EXPECT_FALSE(job.finish(milliseconds(1))) << "two sleep";
    job.kill(0);
    last = job.pid(2);
  }
  EXPECT_EQ(::kill(last, 0), -1) << "it outlives its job";
}

TEST(Scopes, LeaveNothingBehind) {
  std::string path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    std::ofstream(folder / "file") << "text";
    EXPECT_EQ(contents_of(folder / "file"), "text");
    EXPECT_EQ(folder.list(), folder / "file\n");
    const ScopedVariable variable("CCOM_TEST_OF_SCOPES", "value");
    EXPECT_STREQ(std::getenv("CCOM_TEST_OF_SCOPES"), "value");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(std::getenv("CCOM_TEST_OF_SCOPES"), nullptr);
}

}  // namespace
}  // namespace ccom
