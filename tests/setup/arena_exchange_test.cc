// SPDX-License-Identifier: Apache-2.0
//
// Two processes of a host that put each other's arenas within reach. Where one lacks descriptors, before or after it
// has said what it wants, both are told at once that they have to copy: nobody waits until the deadline, and it is no
// error.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "setup/arena_exchange.h"
#include "setup/exchanges.pb.h"
#include "tests/harness/child.h"

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

struct Outcome {
  bool has_all = false;
  int kept = 0;  // descriptors
  double seconds = 0;
};

// Where none can be opened.
int count_descriptors() {
  int open = 0;
  for (int fd = 0; fd < 256; ++fd) open += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return open;
}

std::string swap(const PacketSocket& other, const std::string& mine) {
  other.send(mine);
  return other.receive();
}

Outcome exchange(int local_rank, const PacketSocket& link, const Secret& key, Loss loss) {
  const auto self = static_cast<size_t>(local_rank);
  std::array<uint64_t, 2> numbers{};
  std::array<wire::ProcessMemory, 2> memories;
  numbers[self] = process_number();
  numbers[1 - self] = std::stoull(swap(link, std::to_string(process_number())));
  memories[self] = ArenaExchange::describe();
  EXPECT_TRUE(memories[1 - self].ParseFromString(swap(link, memories[self].SerializeAsString())));
  if (loss == Loss::BeforeItAsks) lose_descriptors();
  const int open_before = count_descriptors();
  ArenaExchange arenas(local_rank, key);
  std::array<wire::ArenaOffer, 2> offers;
  offers[self] = arenas.prepare({{numbers[0], memories.data()}, {numbers[1], &memories[1]}});
  EXPECT_TRUE(offers[1 - self].ParseFromString(swap(link, offers[self].SerializeAsString())));
  if (loss == Loss::BeforeItTrades) lose_descriptors();
  const auto start = Clock::now();
  arenas.trade({offers.data(), &offers[1]}, Deadline::after(kPatience));
  const int kept = count_descriptors() - open_before;
  return {arenas.has_all(), kept, std::chrono::duration<double>(Clock::now() - start).count()};
}

// Files: whether each process lets others open its arena, or has to hand it over.
enum class Files { Shown, Hidden };

std::array<Outcome, 2> outcomes(Loss loss, Files files = Files::Hidden) {
  const Secret key = Secret::random();
  std::array<int, 2> link{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, link.data()), 0);
  const auto child = [&](size_t i) {
    return Child([&, i](const PacketSocket& test) {
      ::prctl(PR_SET_DUMPABLE, files == Files::Shown ? 1 : 0);
      test.send_value(exchange(static_cast<int>(i), PacketSocket(link[i]), key, i == 1 ? loss : Loss::Never));
      return testing::Test::HasFailure() ? 1 : 0;
    });
  };
  // Both are forked, so that neither has an arena before: a process has one for good.
  std::array<Child, 2> processes{child(0), child(1)};
  std::array<Outcome, 2> both;
  for (size_t i = 0; i < 2; ++i) {
    both[i] = processes[i].receive_value<Outcome>();
    EXPECT_LT(both[i].seconds, std::chrono::duration<double>(kAtOnce).count()) << "waited for what never comes";
    EXPECT_EQ(processes[i].wait(), 0);
    ::close(link[i]);
  }
  return both;
}

TEST(ArenaExchange, PutsBothArenasWithinReach) {
  for (const Files files : {Files::Hidden, Files::Shown}) {
    const auto both = outcomes(Loss::Never, files);
    EXPECT_TRUE(both[0].has_all && both[1].has_all);
    EXPECT_EQ(both[0].kept, files == Files::Shown ? 0 : 1) << "what can be opened again is not kept open";
  }
}

TEST(ArenaExchange, AProcessOpensTheArenasOfThoseThatShowTheirFiles) {
  const auto both = outcomes(Loss::BeforeItTrades, Files::Shown);
  EXPECT_TRUE(both[0].has_all && both[1].has_all) << "they are mapped before they trade";
}

TEST(ArenaExchange, AProcessThatCannotOpenAnArenaHasNotAll) {
  const auto both = outcomes(Loss::BeforeItAsks, Files::Shown);
  EXPECT_TRUE(both[0].has_all && !both[1].has_all);
}

TEST(ArenaExchange, AProcessWithoutDescriptorsForItLeavesBothWithCopies) {
  const auto both = outcomes(Loss::BeforeItAsks);
  EXPECT_FALSE(both[0].has_all || both[1].has_all);
}

// What fails first gives back its descriptor, so that the other direction may succeed.
TEST(ArenaExchange, AProcessThatRunsOutOfDescriptorsMeanwhileIsNotWaitedFor) {
  const auto both = outcomes(Loss::BeforeItTrades);
  EXPECT_FALSE(both[0].has_all && both[1].has_all);
}

}  // namespace
}  // namespace ccom
