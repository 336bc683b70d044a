// SPDX-License-Identifier: Apache-2.0
//
// What /proc tells of threads of other processes that run, sleep, are stopped or killed.
#include "liveness/thread_state.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

namespace ccom {
namespace {

// A child that does nothing but the given thing.
class Child {
 public:
  explicit Child(void (*run)()) : pid_(::fork()) {
    if (pid_ == 0) {
      run();
      std::_Exit(0);
    }
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }
  // Within a time that is generous on a busy machine.
  bool becomes(ThreadState state) const {
    for (int i = 0; i < 5000; ++i) {
      if (thread_state(pid_, pid_) == state) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

 private:
  const pid_t pid_;
};

void run_for_ever() {
  for (volatile unsigned turns = 0;;) turns = turns + 1;
}

void sleep_for_ever() {
  for (;;) ::pause();
}

TEST(ThreadState, OfWhoRunsIsStoppedAndKilled) {
  const Child child(run_for_ever);
  EXPECT_TRUE(child.becomes(ThreadState::Runnable));
  ::kill(child.pid(), SIGSTOP);
  EXPECT_TRUE(child.becomes(ThreadState::Waiting));
  ::kill(child.pid(), SIGCONT);
  EXPECT_TRUE(child.becomes(ThreadState::Runnable));
  ::kill(child.pid(), SIGKILL);
  EXPECT_EQ(thread_state(child.pid(), child.pid()), ThreadState::Ending);
  EXPECT_TRUE(child.becomes(ThreadState::Ending));
}

// At whatever point of its end.
TEST(ThreadState, OfWhoSleepsAndIsKilled) {
  for (int round = 0; round < 100; ++round) {
    const Child child(sleep_for_ever);
    EXPECT_TRUE(child.becomes(ThreadState::Waiting));
    ::kill(child.pid(), SIGKILL);
    for (int i = 0; i < 50; ++i) ASSERT_EQ(thread_state(child.pid(), child.pid()), ThreadState::Ending);
  }
}

TEST(ThreadState, IsUnknownWithoutSuchAThread) {
  EXPECT_EQ(thread_state(::getpid(), 1), ThreadState::Unknown);
  EXPECT_EQ(parse_thread_state(""), ThreadState::Unknown);
  EXPECT_EQ(parse_thread_state("17 (name) R 1 2 3"), ThreadState::Unknown);
}

TEST(ThreadState, IsNotMisledByNames) {
  std::ifstream file("/proc/self/stat");
  std::stringstream text;
  text << file.rdbuf();
  const std::string fields = text.str().substr(text.str().rfind(')') + 2);
  EXPECT_EQ(parse_thread_state("17 (a) S 1 (b) " + fields), ThreadState::Runnable);
}

TEST(ThreadState, BelongsToANamespace) { EXPECT_NE(pid_namespace(), 0u); }

}  // namespace
}  // namespace ccom
