// SPDX-License-Identifier: Apache-2.0
//
// What /proc tells of threads of other processes that run, sleep, are stopped or killed.
#include "liveness/thread_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "tests/harness/child.h"
#include "tests/harness/waiting.h"

namespace ccom {
namespace {

// Within a time that is generous on a busy machine.
bool becomes(const Child& child, ThreadState state) {
  return wait_until([&] { return thread_state(child.pid(), child.pid()) == state; });
}

int run_for_ever() {
  for (volatile unsigned turns = 0;;) turns = turns + 1;
}

TEST(ThreadState, OfWhoRunsIsStoppedAndKilled) {
  const Child child(run_for_ever);
  EXPECT_TRUE(becomes(child, ThreadState::Runnable));
  child.signal(SIGSTOP);
  EXPECT_TRUE(becomes(child, ThreadState::Waiting));
  child.signal(SIGCONT);
  EXPECT_TRUE(becomes(child, ThreadState::Runnable));
  child.signal(SIGKILL);
  EXPECT_EQ(thread_state(child.pid(), child.pid()), ThreadState::Ending);
  EXPECT_TRUE(becomes(child, ThreadState::Ending));
}

// At whatever point of its end.
TEST(ThreadState, OfWhoSleepsAndIsKilled) {
  for (int round = 0; round < 100; ++round) {
    const Child child([] { return ::pause(); });
    EXPECT_TRUE(becomes(child, ThreadState::Waiting));
    child.signal(SIGKILL);
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
