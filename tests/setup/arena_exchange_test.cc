// SPDX-License-Identifier: Apache-2.0
//
// Two processes of a host that put each other's arenas within reach. Where one lacks descriptors, before or after it
// has said what it wants, both are told at once that they have to copy: nobody waits until the deadline, and it is no
// error.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "setup/arena_exchange.h"
#include "setup/exchanges.pb.h"

namespace ccom {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);
constexpr auto kAtOnce = std::chrono::seconds(20);

// When the second process loses all further descriptors.
enum class Loss { Never, BeforeItAsks, BeforeItTrades };

void lose_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 64;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  while (::dup(STDIN_FILENO) >= 0) continue;
}

// Of one packet each.
class Link {
 public:
  explicit Link(int fd) : fd_(fd) {}
  std::string swap(const std::string& mine) const {
    EXPECT_EQ(::send(fd_, mine.data(), mine.size(), MSG_NOSIGNAL), static_cast<ssize_t>(mine.size()));
    std::array<char, 4096> theirs;
    const ssize_t length = ::recv(fd_, theirs.data(), theirs.size(), 0);
    EXPECT_GT(length, 0);
    return {theirs.data(), static_cast<size_t>(std::max<ssize_t>(length, 0))};
  }

 private:
  const int fd_;
};

struct Outcome {
  bool has_all = false;
  int kept = 0;  // descriptors
  double seconds = 0;
};

int open_descriptors() {
  int open = 0;
  for (int fd = 0; fd < 256; ++fd) open += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return open;
}

Outcome exchange(int local_rank, const Link& link, const Secret& key, Loss loss) {
  const auto self = static_cast<size_t>(local_rank);
  std::array<uint64_t, 2> numbers{};
  std::array<wire::ProcessMemory, 2> memories;
  numbers[self] = process_number();
  numbers[1 - self] = std::stoull(link.swap(std::to_string(process_number())));
  memories[self] = ArenaExchange::describe();
  EXPECT_TRUE(memories[1 - self].ParseFromString(link.swap(memories[self].SerializeAsString())));
  if (loss == Loss::BeforeItAsks) lose_descriptors();
  const int open_before = open_descriptors();
  ArenaExchange arenas(local_rank, key);
  std::array<wire::ArenaOffer, 2> offers;
  offers[self] = arenas.prepare({{numbers[0], memories.data()}, {numbers[1], &memories[1]}});
  EXPECT_TRUE(offers[1 - self].ParseFromString(link.swap(offers[self].SerializeAsString())));
  if (loss == Loss::BeforeItTrades) lose_descriptors();
  const auto start = Clock::now();
  arenas.trade({offers.data(), &offers[1]}, Deadline::after(kPatience));
  const int kept = open_descriptors() - open_before;
  return {arenas.has_all(), kept, std::chrono::duration<double>(Clock::now() - start).count()};
}

// Both are forked, so that neither has an arena before: a process has one for good.
Outcome outcome_of(pid_t process, int fd) {
  Outcome outcome;
  EXPECT_EQ(::read(fd, &outcome, sizeof outcome), static_cast<ssize_t>(sizeof outcome));
  int status = -1;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_EQ(status, 0);
  return outcome;
}

// Files: whether each process lets others open its arena, or has to hand it over.
enum class Files { Shown, Hidden };

std::array<Outcome, 2> outcomes(Loss loss, Files files = Files::Hidden) {
  const Secret key = Secret::random();
  std::array<int, 2> link{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, link.data()), 0);
  std::array<pid_t, 2> processes{};
  std::array<std::array<int, 2>, 2> reports{};
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(::pipe(reports[i].data()), 0);
    processes[i] = ::fork();
    if (processes[i] != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_DUMPABLE, files == Files::Shown ? 1 : 0);
    const Outcome outcome = exchange(static_cast<int>(i), Link(link[i]), key, i == 1 ? loss : Loss::Never);
    const ssize_t written = ::write(reports[i][1], &outcome, sizeof outcome);
    ::_exit(written == static_cast<ssize_t>(sizeof outcome) && !testing::Test::HasFailure() ? 0 : 1);
  }
  std::array<Outcome, 2> both;
  for (size_t i = 0; i < 2; ++i) {
    both[i] = outcome_of(processes[i], reports[i][0]);
    ::close(reports[i][0]);
    ::close(reports[i][1]);
    ::close(link[i]);
  }
  return both;
}

void expect_fast(const std::array<Outcome, 2>& both) {
  for (const Outcome& outcome : both)
    EXPECT_LT(outcome.seconds, std::chrono::duration<double>(kAtOnce).count()) << "waited for what never comes";
}

TEST(ArenaExchange, PutsBothArenasWithinReach) {
  for (const Files files : {Files::Hidden, Files::Shown}) {
    const auto both = outcomes(Loss::Never, files);
    EXPECT_TRUE(both[0].has_all && both[1].has_all);
    EXPECT_EQ(both[0].kept, files == Files::Shown ? 0 : 1) << "what can be opened again is not kept open";
    expect_fast(both);
  }
}

TEST(ArenaExchange, AProcessOpensTheArenasOfThoseThatShowTheirFiles) {
  const auto both = outcomes(Loss::BeforeItTrades, Files::Shown);
  EXPECT_TRUE(both[0].has_all && both[1].has_all) << "they are mapped before they trade";
  expect_fast(both);
}

TEST(ArenaExchange, AProcessThatCannotOpenAnArenaHasNotAll) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "as below";
#endif
  const auto both = outcomes(Loss::BeforeItAsks, Files::Shown);
  EXPECT_TRUE(both[0].has_all && !both[1].has_all);
  expect_fast(both);
}

TEST(ArenaExchange, AProcessWithoutDescriptorsForItLeavesBothWithCopies) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the undefined-behaviour sanitizer looks at memory through a pipe, and takes an object for none";
#endif
  const auto both = outcomes(Loss::BeforeItAsks);
  EXPECT_FALSE(both[0].has_all || both[1].has_all);
  expect_fast(both);
}

// What fails first gives back its descriptor, so that the other direction may succeed.
TEST(ArenaExchange, AProcessThatRunsOutOfDescriptorsMeanwhileIsNotWaitedFor) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "as above";
#endif
  const auto both = outcomes(Loss::BeforeItTrades);
  EXPECT_FALSE(both[0].has_all && both[1].has_all);
  expect_fast(both);
}

}  // namespace
}  // namespace ccom
