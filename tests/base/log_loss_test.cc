// SPDX-License-Identifier: Apache-2.0
//
// Where stderr refuses lines, takes them late or is not there, where a function is slow and where there is no thread:
// nobody waits, the process lives, and what was lost is counted and told.
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/log_writer.h"
#include "tests/base/log_child.h"

namespace ccom {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

using Lines = std::vector<std::string>;

constexpr milliseconds kLongEnough(20000);

// Stderr is something else until the end of the scope.
class StderrIs {
 public:
  explicit StderrIs(int other) : before_(::dup(STDERR_FILENO)) {
    other < 0 ? (void)::close(STDERR_FILENO) : (void)::dup2(other, STDERR_FILENO);
  }
  ~StderrIs() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }
  StderrIs(const StderrIs&) = delete;
  StderrIs& operator=(const StderrIs&) = delete;

 private:
  const int before_;
};

int pipe_that_nobody_reads() {
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  ::close(ends[0]);
  return ends[1];
}

// Five lines that stderr, as `open` returns it, refuses; then, later, one that it takes.
Lines said_after_refusals(int (*open)(), milliseconds later = milliseconds(0)) {
  return said_by([=] {
    {
      const StderrIs refused(open());
      for (int i = 0; i < 5; ++i) log(LogLevel::Error, "lost");
      flush_log(kLongEnough);
      std::this_thread::sleep_for(later);
    }
    log(LogLevel::Error, "after");
  });
}

const Lines kFiveAndAfter{"5 lines were dropped, because those before could not be delivered", "after"};

int full_disk() { return ::open("/dev/full", O_WRONLY); }

TEST(LostLines, OfAFullDiskAreCounted) { EXPECT_EQ(said_after_refusals(full_disk), kFiveAndAfter); }

TEST(LostLines, OfAPipeWithoutAReaderAreCountedAndDoNotEndTheProcess) {
  EXPECT_EQ(said_after_refusals(pipe_that_nobody_reads), kFiveAndAfter) << "SIGPIPE";
}

TEST(LostLines, OfAClosedStderrAreCounted) {
  EXPECT_EQ(said_after_refusals([] { return -1; }), kFiveAndAfter);
}

// The count is told although the thread has ended meanwhile: so long it does not live without a line.
TEST(LostLines, AreToldByTheNextLineHoweverLate) {
  EXPECT_EQ(said_after_refusals(full_disk, milliseconds(2500)), kFiveAndAfter);
}

// A reader that stops, comes back and stops again: whoever logs has gone on each time before it reads.
TEST(LostLines, WithAReaderThatComesAndGoesAreAllAccountedFor) {
  constexpr int kRounds = 4;
  constexpr int kEach = 300;
  int done[2];
  ASSERT_EQ(::pipe(done), 0);
  LoggingChild child([&] {
    for (int round = 0; round < kRounds; ++round) {
      for (int i = 0; i < kEach; ++i) log(LogLevel::Warn, "%d %d", round, i);
      (void)!::write(done[1], "x", 1);
      flush_log(kLongEnough);  // as long as the reader takes to come back
    }
    std::exit(0);  // with the last count
  });
  std::string text;
  char token = 0;
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_EQ(::read(done[0], &token, 1), 1) << "all lines were taken, although nobody reads";
    pollfd look{child.output(), POLLIN, 0};
    char buffer[4096];
    while (::poll(&look, 1, 300) == 1 && (look.revents & POLLIN) != 0) {
      const ssize_t got = ::read(child.output(), buffer, sizeof buffer);
      if (got <= 0) break;
      text.append(buffer, static_cast<size_t>(got));
    }
  }
  EXPECT_EQ(child.wait(), 0);
  unsigned long long delivered = 0;
  unsigned long long dropped = 0;
  int last = -1;
  for (const std::string& line : LoggingChild::lines_of(text + child.rest())) {
    unsigned long long lost = 0;
    int round = 0;
    int number = 0;
    if (line.find("dropped") != std::string::npos && std::sscanf(line.c_str(), "%llu", &lost) == 1) {
      dropped += lost;
    } else if (std::sscanf(line.c_str(), "%d %d", &round, &number) == 2) {
      ++delivered;
      EXPECT_GT(round * kEach + number, last);
      last = round * kEach + number;
    }
  }
  EXPECT_EQ(delivered + dropped, static_cast<unsigned long long>(kRounds * kEach));
  EXPECT_GT(dropped, 0U);
  ::close(done[0]);
  ::close(done[1]);
}

// As if memory had run out for their stacks.
void be_without_threads() {
  pthread_attr_t huge;
  ::pthread_getattr_default_np(&huge);
  ::pthread_attr_setstacksize(&huge, size_t{1} << 46);
  ::pthread_setattr_default_np(&huge);
}

TEST(WithoutAThread, LinesAreKeptForTheOneThatALaterLineStarts) {
  const Lines said = said_by([] {
    pthread_attr_t usual;
    ::pthread_getattr_default_np(&usual);
    be_without_threads();
    log(LogLevel::Error, "first");
    flush_log();
    ::pthread_setattr_default_np(&usual);
    log(LogLevel::Error, "second");
  });
  EXPECT_EQ(said, (Lines{"first", "second"}));
}

TEST(WithoutAThread, LinesAreOutAtTheEndOfTheProcess) {
  const Lines said = said_by([] {
    be_without_threads();
    ::fcntl(STDERR_FILENO, F_SETPIPE_SZ, 1 << 16);  // one of a page counts as full with a byte in it
    log(LogLevel::Error, "first");
    log(LogLevel::Error, "second");
  });
  EXPECT_EQ(said, (Lines{"first", "second"}));
}

TEST(WithoutAThread, NeitherAFullPipeNorOneWithoutAReaderKeepsTheProcessFromItsEnd) {
  for (const bool is_full : {true, false}) {
    LoggingChild child([is_full] {
      be_without_threads();
      is_full ? fill_stderr() : (void)::dup2(pipe_that_nobody_reads(), STDERR_FILENO);
      for (int i = 0; i < 200; ++i) log(LogLevel::Error, "lost");
      std::exit(0);
    });
    EXPECT_EQ(child.wait(), 0) << is_full;
  }
}

TEST(RareLines, OfATopicAreTwoASecondWithACount) {
  const Lines said = said_by([] {
    for (int i = 0; i < 200; ++i) log_rarely(LogTopic::Starvation, LogLevel::Warn, "part %d", i);
    log_rarely(LogTopic::Silence, LogLevel::Warn, "another topic");
  });
  EXPECT_EQ(said, (Lines{"part 0", "another topic", "part 199 (and 198 more lines like this one)"}));
}

// Not only at the end: the thread says them after a second.
TEST(RareLines, ComeWithoutAnotherLine) {
  LoggingChild child([] {
    for (int i = 0; i < 3; ++i) log_rarely(LogTopic::Starvation, LogLevel::Warn, "part %d", i);
    std::this_thread::sleep_for(milliseconds(2500));  // longer than that second
    ::_exit(0);
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(child.read(), (Lines{"part 0", "part 2 (and 1 more lines like this one)"}));
}

TEST(RareLines, AreAllSaidAtDebug) {
  const Lines said = said_by([] {
    ::setenv("CCOM_LOG", "error,base=debug", 1);
    for (int i = 0; i < 20; ++i) log_rarely(LogTopic::Starvation, LogLevel::Warn, "part %d", i);
  });
  EXPECT_EQ(said.size(), 20U);
}

// The function before gets what it was left out for.
TEST(RareLines, AreDeliveredBeforeTheFunctionGoes) {
  std::vector<std::string> lines;
  set_log_function([](LogLevel, const char* message,
                      void* user) { static_cast<std::vector<std::string>*>(user)->push_back(message); },
                   &lines);
  for (int i = 0; i < 5; ++i) log_rarely(LogTopic::PartStarted, LogLevel::Info, "part %d", i);
  set_log_function(nullptr, nullptr);
  EXPECT_EQ(lines, (Lines{"part 0", "part 4 (and 3 more lines like this one)"}));
}

// Before, whoever logged waited for each line as long as it took, up to 10 ms.
TEST(Waiting, ForASlowFunctionIsForNobody) {
  set_log_function([](LogLevel, const char*, void*) { std::this_thread::sleep_for(milliseconds(2)); }, nullptr);
  double shares[5];
  for (double& share : shares) {
    const auto begin = Clock::now();
    for (int i = 0; i < 100; ++i) log(LogLevel::Debug, "slow");
    const std::chrono::duration<double> logging = Clock::now() - begin;
    flush_log(kLongEnough);
    share = logging / std::chrono::duration<double>(Clock::now() - begin);
  }
  set_log_function(nullptr, nullptr);
  std::ranges::sort(shares);
  EXPECT_LT(shares[2], 0.5) << "of the time until all lines are delivered";
}

}  // namespace
}  // namespace ccom
