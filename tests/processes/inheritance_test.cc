// SPDX-License-Identifier: Apache-2.0
//
// What ccom leaves to a rank's children and threads: a forked child that lives on does not hide the death of its
// parent; a program that is started has no descriptor of ccom's or gRPC's, during the start either; and no thread of
// ccom's, gRPC's or libfabric's takes the application's signals.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStart{60000};
constexpr milliseconds kSilence{20000};  // by which the death would be known at last
constexpr milliseconds kAtOnce{8000};
constexpr int kVictim = 2;

class Inheritance : public testing::TestWithParam<std::string> {};

// Sleeps until its end; so the test may end by a failure without leaving it behind.
class Child {
 public:
  explicit Child(const std::string& line) : pid_(std::atoi(line.substr(line.find(' ') + 1).c_str())) {}
  ~Child() {
    if (pid_ > 1) ::kill(pid_, SIGKILL);
  }
  bool lives() const { return pid_ > 1 && ::kill(pid_, 0) == 0; }

 private:
  const pid_t pid_;
};

// The last of three ranks is alone on its host where there are several: nobody watches its process there.
TEST_P(Inheritance, AForkedChildThatLivesOnDoesNotHideTheDeathOfItsParent) {
  Job job("inheritance_program", 3, {"forks", std::to_string(kVictim)},
          ranks_on(GetParam(), {{"CCOM_DEAD_MS", std::to_string(kSilence.count())}}));
  ASSERT_TRUE(job.wait_for("ready", {0, 1}, kStart) && job.wait_for("child", {kVictim}, kStart)) << job.transcript();
  const Child child(job.line(kVictim, "child"));
  const auto killed = std::chrono::steady_clock::now();
  job.kill(kVictim);
  EXPECT_TRUE(job.wait_for("failed", {0, 1}, kAtOnce)) << "not noticed within " << kAtOnce.count() << " ms";
  EXPECT_TRUE(child.lives());
  for (const int rank : {0, 1}) {
    EXPECT_TRUE(job.line(rank, "failed").starts_with("failed 6 [2]")) << job.line(rank, "failed");
    const auto noticed = std::chrono::duration<double, std::milli>(job.when(rank, "failed") - killed);
    std::printf("%s: rank %d knew after %.1f ms\n", GetParam().c_str(), rank, noticed.count());
  }
  EXPECT_TRUE(job.finish(milliseconds(20000))) << job.transcript();
}

// libfabric (1.17) opens its sockets and epoll descriptors without close-on-exec, whenever it connects, and libraries
// that it loads open files of the kernel's so; nobody else can tell them from the application's. ccom's own sockets are
// looked at on the other transports.
bool is_of_libfabric(const std::string& line) {
  return line.find(" socket:") != std::string::npos || line.find("[eventpoll]") != std::string::npos ||
         line.find(" /proc/") != std::string::npos || line.find(" /sys/") != std::string::npos;
}

std::string faults_of(const Job& job, int nranks, const std::string& prefix) {
  std::string faults;
  for (int rank = 0; rank < nranks; ++rank) {
    for (const std::string& line : job.lines(rank)) {
      const bool is_known = Inheritance::GetParam() == "ofi" && prefix == "leak" && is_of_libfabric(line);
      if (line.starts_with(prefix) && !is_known) faults += "rank " + std::to_string(rank) + ": " + line + "\n";
    }
  }
  return faults;
}

TEST_P(Inheritance, ProgramsGetNoDescriptorAndThreadsLeaveSignalsAlone) {
  const int nranks = GetParam() == "mixed" ? 4 : 2;
  Job job("inheritance_program", nranks, {"watches"}, ranks_on(GetParam()));
  ASSERT_TRUE(job.wait_for("watched", first_ranks(nranks), kStart)) << job.transcript();
  for (const char* fault : {"leak", "mask", "failed"}) EXPECT_EQ(faults_of(job, nranks, fault), "");
  std::printf("%s: rank 0 %s\n", GetParam().c_str(), job.line(0, "watched").c_str());
  EXPECT_TRUE(job.finish(milliseconds(20000))) << job.transcript();
}

INSTANTIATE_TEST_SUITE_P(On, Inheritance, testing::Values("shm", "tcp", "ofi", "mixed"), name_of_case);

}  // namespace
}  // namespace ccom
