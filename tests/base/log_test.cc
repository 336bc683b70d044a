// SPDX-License-Identifier: Apache-2.0
//
// Log lines: none is lost or out of order where they can be delivered, and nobody waits where they cannot.
#include "base/log.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/assert.h"
#include "base/log_writer.h"
#include "tests/base/log_child.h"
#include "tests/harness/child.h"
#include "tests/harness/threads.h"
#include "tests/harness/waiting.h"

// ThreadSanitizer ends a forked child that starts a thread.
#if defined(__SANITIZE_THREAD__)
#define SKIP_WITHOUT_THREADS_AFTER_FORK() GTEST_SKIP() << "ThreadSanitizer does not support threads after fork()"
#else
#define SKIP_WITHOUT_THREADS_AFTER_FORK() (void)0
#endif

// A process that ends by _exit() does not join the thread that has written its last lines.
extern "C" const char* __tsan_default_options() { return "report_thread_leaks=0"; }

namespace ccom {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLongEnough(20000);

double since_ms(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

void wait_for(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::sleep_for(milliseconds(1));
}

size_t threads_named(const char* name, std::string* status) {
  size_t found = 0;
  DIR* const tasks = ::opendir("/proc/self/task");
  for (dirent* entry = ::readdir(tasks); entry != nullptr; entry = ::readdir(tasks)) {
    const std::string folder = std::string("/proc/self/task/") + entry->d_name;
    std::string text;
    std::getline(std::ifstream(folder + "/comm") >> std::ws, text);
    if (text != name) continue;
    ++found;
    for (std::ifstream file(folder + "/status"); std::getline(file, text);) {
      if (text.starts_with("SigBlk:")) *status = text;
    }
  }
  ::closedir(tasks);
  return found;
}

TEST(Log, LinesComeInOrderAndAreOutWhenTheProcessEndsAtOnce) {
  std::vector<std::string> expected;
  for (int i = 0; i < 50; ++i) expected.push_back("line " + std::to_string(i));
  LoggingChild child([] {
    for (int i = 0; i < 50; ++i) log(LogLevel::Error, "line %d", i);
    flush_log(kLongEnough);
    ::_exit(0);  // no destructor
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(child.read(), expected);
}

// T7: a pipe that nobody reads stopped whoever logged, for ever.
TEST(Log, AFullPipeStopsNobody) {
  int done[2], go[2];
  ASSERT_EQ(::pipe(done), 0);
  ASSERT_EQ(::pipe(go), 0);
  constexpr int kThreads = 4;
  constexpr int kEach = 100;
  LoggingChild child([&] {
    fill_stderr();
    const auto begin = Clock::now();
    run_threads(kThreads, [&](int t) {
      for (int i = 0; i < kEach; ++i) log(LogLevel::Warn, "%d %d", t, i);
    });
    const double took_ms = since_ms(begin);
    (void)!::write(done[1], &took_ms, sizeof took_ms);
    char token = 0;
    (void)!::read(go[0], &token, 1);
    std::exit(0);  // has to deliver what is left
  });
  double took_ms = 1e9;
  ASSERT_EQ(::read(done[0], &took_ms, sizeof took_ms), static_cast<ssize_t>(sizeof took_ms));
  EXPECT_LT(took_ms, 5000) << "400 lines into a full pipe";
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  std::vector<int> last(kThreads, -1);
  uint64_t delivered = 0;
  uint64_t dropped = 0;
  for (const std::string& line : child.read()) {
    int thread = 0;
    int number = 0;
    unsigned long long lines = 0;
    if (std::sscanf(line.c_str(), "%llu lines were dropped", &lines) == 1 &&
        line.find("dropped") != std::string::npos) {
      dropped += lines;
    } else if (std::sscanf(line.c_str(), "%d %d", &thread, &number) == 2) {
      ++delivered;
      EXPECT_GT(number, last[static_cast<size_t>(thread)]) << "in the order in which each thread said them";
      last[static_cast<size_t>(thread)] = number;
    }
  }
  EXPECT_EQ(child.wait(), 0);
  EXPECT_GE(delivered, 100U);
  EXPECT_EQ(delivered + dropped, static_cast<uint64_t>(kThreads * kEach)) << "every line, or counted";
  for (const int fd : {done[0], done[1], go[0], go[1]}) ::close(fd);
}

TEST(Log, AFullPipeDelaysTheExitByHalfASecondAtMost) {
  LoggingChild child([] {
    fill_stderr();
    log(LogLevel::Error, "nobody reads this");
    std::exit(0);
  });
  const auto begin = Clock::now();
  EXPECT_EQ(child.wait(), 0);
  EXPECT_LT(since_ms(begin), 5000);
}

TEST(Log, AFullPipeDoesNotKeepAFailedAssertionFromEndingTheProcess) {
  LoggingChild child([] {
    fill_stderr();
    log(LogLevel::Error, "nobody reads this");
    assertion_failed("false", "here", 1);
  });
  const auto begin = Clock::now();
  EXPECT_EQ(child.wait(), 128 + SIGABRT);
  EXPECT_LT(since_ms(begin), 10000);
}

TEST(Log, AFailedAssertionIsSaidAfterTheLinesBefore) {
  LoggingChild child([] {
    log(LogLevel::Error, "before");
    assertion_failed("1 == 2", "file.cc", 7);
  });
  child.wait();
  const std::vector<std::string> lines = child.read();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "before");
  EXPECT_EQ(lines[1], "file.cc:7: assertion failed: 1 == 2: this is a bug in ccom; please report it");
}

// The function holds nothing that others wait for.
TEST(Log, AFunctionThatBlocksStopsNobody) {
  static std::atomic<bool> is_inside{false}, may_go{false};
  static std::atomic<int> calls{0};
  is_inside = may_go = false;
  calls = 0;
  set_log_function(
      [](LogLevel, const char*, void*) {
        ++calls;
        is_inside = true;
        wait_for(may_go);
      },
      nullptr);
  std::thread first([] { log(LogLevel::Debug, "first"); });
  wait_for(is_inside);
  const auto begin = Clock::now();
  for (int i = 0; i < 1000; ++i) log(LogLevel::Debug, "line %d", i);
  EXPECT_TRUE(log_enabled(LogLevel::Debug));
  EXPECT_LT(since_ms(begin), 5000);
  first.join();
  may_go = true;
  set_log_function(nullptr, nullptr);
  const int after = calls;
  EXPECT_GT(after, 100) << "those that were kept";
  EXPECT_LT(after, 1000) << "dropped lines are not delivered later";
  log(LogLevel::Debug, "nobody's");
  EXPECT_EQ(calls, after) << "is not called any more";
}

TEST(Log, TheFunctionMayLogAndExchangeItself) {
  static std::atomic<int> calls{0};
  calls = 0;
  set_log_function(
      [](LogLevel, const char*, void*) {
        if (++calls < 3) log(LogLevel::Debug, "another");
        if (calls == 3) set_log_function(nullptr, nullptr);
      },
      nullptr);
  log(LogLevel::Debug, "first");
  EXPECT_TRUE(wait_until([] { return !log_enabled(LogLevel::Debug); }));
  EXPECT_EQ(calls, 3);
}

// Who logs does not wait, and _exit() for nobody: the lines may come later.
bool has_written_all() {
  std::string blocked;
  return wait_until([&] { return threads_named("ccom-log", &blocked) == 0; });
}

// The parent's lines are the parent's; a child says its own, and has the function.
TEST(Log, AForkedChildLogsForItself) {
  SKIP_WITHOUT_THREADS_AFTER_FORK();
  LoggingChild child([] {
    log(LogLevel::Error, "parent");
    holds_in_child([] {
      log(LogLevel::Error, "child");
      return has_written_all();
    });
    log(LogLevel::Error, "parent again");
    if (!has_written_all()) ::_exit(5);
  });
  EXPECT_EQ(child.wait(), 0);
  std::vector<std::string> lines = child.read();
  // Lines of one process come in order; on a loaded machine another process may be faster.
  EXPECT_EQ(std::erase(lines, "child"), 1U);
  EXPECT_EQ(lines, (std::vector<std::string>{"parent", "parent again"}));
}

TEST(Log, ForksBesideThreadsThatLog) {
  SKIP_WITHOUT_THREADS_AFTER_FORK();
  set_log_function([](LogLevel, const char*, void*) {}, nullptr);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&stop] {
      while (!stop) log(LogLevel::Debug, "x");
    });
  }
  for (int i = 0; i < 100; ++i) {
    const auto log_and_stop = [] {
      log(LogLevel::Debug, "y");
      set_log_function(nullptr, nullptr);
      return true;
    };
    ASSERT_TRUE(holds_in_child(log_and_stop, 20)) << "fork " << i;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  set_log_function(nullptr, nullptr);
}

TEST(Log, TheThreadLeavesSignalsAloneAndExistsOnlyWhenThereAreLines) {
  SKIP_WITHOUT_THREADS_AFTER_FORK();
  LoggingChild child([] {
    std::string blocked;
    log(LogLevel::Debug, "not wanted");
    if (threads_named("ccom-log", &blocked) != 0) ::_exit(2);
    log(LogLevel::Error, "wanted");
    if (threads_named("ccom-log", &blocked) != 1) ::_exit(3);
    const unsigned long long mask = std::strtoull(blocked.substr(sizeof "SigBlk:").c_str(), nullptr, 16);
    for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) {
      if ((mask >> (number - 1) & 1) == 0) ::_exit(4);
    }
    if (!has_written_all()) ::_exit(5);
    log(LogLevel::Error, "again");
    if (!has_written_all()) ::_exit(5);
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(child.read(), (std::vector<std::string>{"wanted", "again"}));
}

}  // namespace
}  // namespace ccom
