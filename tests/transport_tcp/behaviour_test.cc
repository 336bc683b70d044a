// SPDX-License-Identifier: Apache-2.0
//
// What the conformance suite cannot know about TCP: many connections at once, IPv6, descriptors, memory, idle costs.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>

#include "base/network.h"
#include "tests/harness/resources.h"
#include "tests/transport_tcp/raw.h"

namespace ccom::tcp {
namespace {

using std::chrono::milliseconds;

// Both directions of every channel at once, messages of all sizes; one thread per rank, sleeping in wait().
void exchange(Pair& pair, int channels, unsigned seed) {
  constexpr size_t kMessages = 12;
  const auto side = [&pair, channels, seed](Rank rank) {
    std::mt19937 random(seed);  // the same sizes on both sides
    std::map<Token, std::vector<std::byte>> received;
    std::vector<std::vector<std::byte>> sent;
    for (int index = 0; index < channels; ++index) {
      for (size_t k = 0; k < kMessages; ++k) {
        const size_t size_bytes = random() % (k % 3 == 0 ? 1500000 : 3000);
        const Token token = static_cast<Token>(index) * 100 + k;
        received[token].resize(size_bytes);
        sent.emplace_back(size_bytes, static_cast<std::byte>(token + static_cast<Token>(rank)));
        const Envelope envelope{{token}};
        ASSERT_TRUE(pair.channel(rank, index)
                        .post_receive({envelope, size_bytes, received[token].data(), nullptr, token})
                        .is_ok());
        ASSERT_TRUE(pair.channel(rank, index).post_send({envelope, sent.back(), 10000 + token}).is_ok());
      }
    }
    const Outcome outcome = drive(*pair.ranks[rank], 2 * kMessages * static_cast<size_t>(channels));
    EXPECT_TRUE(outcome.status.is_ok()) << outcome.status.message();
    std::map<bool, std::map<Token, Token>> last;  // by direction and channel: completions come in order
    for (const Token token : outcome.events.completed) {
      Token& before = last[token >= 10000][token % 10000 / 100];
      EXPECT_GE(token % 100, before);
      before = token % 100;
    }
    for (const auto& [token, bytes] : received) {
      const std::vector<std::byte> expected(bytes.size(), static_cast<std::byte>(token + static_cast<Token>(1 - rank)));
      EXPECT_EQ(bytes, expected) << "message " << token;
    }
  };
  std::thread other([&side] { side(1); });
  side(0);
  other.join();
}

TEST(Streams, CarryAllSizesInOrder) {
  for (const int streams : {2, 5}) {
    Pair pair = connected_pair({.streams = streams, .channels = 2});
    exchange(pair, 2, 11);
  }
}

// 64 connections: more than are tried one by one.
TEST(ManyConnections, AreDrivenByReadiness) {
  Pair pair = connected_pair({.streams = 16, .channels = 4});
  exchange(pair, 4, 12);
  exchange(pair, 4, 13);
}

TEST(Ipv6, CarriesMessagesToo) {
  bool has_loopback = false;
  for (const Interface& interface : list_interfaces()) has_loopback |= interface.address == "::1";
  if (!has_loopback) GTEST_SKIP() << "no IPv6 loopback here";
  Pair pair = connected_pair({.streams = 2, .bind_address = "::1"});
  EXPECT_TRUE(pair.ranks[0]->address().starts_with("[::1]:")) << pair.ranks[0]->address();
  exchange(pair, 1, 14);
}

// By a program that this process starts.
bool inherits_a_socket() {
  for (int fd = 3; fd < 1024; ++fd) {
    struct stat info {};
    if (::fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) && (::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) return true;
  }
  return false;
}

TEST(Descriptors, AreClosedOnExecAndAllGivenBack) {
  const int before = open_descriptors();
  const bool did_inherit = inherits_a_socket();
  {
    const Pair pair = connected_pair({.streams = 3, .channels = 2});
    EXPECT_GE(open_descriptors(), before + 12);
    EXPECT_EQ(inherits_a_socket(), did_inherit);
  }
  EXPECT_EQ(open_descriptors(), before);
}

// Of all connections of this process; a listener's is not counted.
std::multiset<std::string> congestion_controls() {
  std::multiset<std::string> found;
  for (int fd = 3; fd < 1024; ++fd) {
    char name[16] = {};
    socklen_t length = sizeof name;
    tcp_info info{};
    socklen_t info_length = sizeof info;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_length) != 0 || info.tcpi_state != TCP_ESTABLISHED)
      continue;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0) found.insert(name);
  }
  return found;
}

TEST(CongestionControl, IsRenoWithinAHost) {
  const std::multiset<std::string> before = congestion_controls();
  const Pair pair = connected_pair({.streams = 2, .channels = 1});
  EXPECT_EQ(congestion_controls().count("reno"), before.count("reno") + 4);
}

TEST(UnpostedMessages, LetTheReceiverSleep) {
  Pair pair = connected_pair({.channels = 2});
  const std::vector<std::byte> flood(32 << 20);
  std::byte byte;
  ASSERT_TRUE(pair.channel(0, 1).post_send({{}, flood, 1}).is_ok());
  ASSERT_TRUE(pair.channel(1, 0).post_receive({{}, 1, &byte, nullptr, 2}).is_ok());
  Events events;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(pair.ranks[0]->progress(events).is_ok());
  int wakes = 0;
  for (const auto start = Clock::now(); Clock::now() - start < milliseconds(300); ++wakes) {
    ASSERT_TRUE(pair.ranks[1]->progress(events).is_ok());
    pair.ranks[1]->wait(milliseconds(50));
  }
  EXPECT_LE(wakes, 20) << "six are due";
  EXPECT_TRUE(events.completed.empty());
}

TEST(Waiting, IsAsLongAsAskedForAlsoBelowAMillisecond) {
  Pair pair = connected_pair();
  std::byte byte;
  ASSERT_TRUE(pair.channel(0).post_receive({{}, 1, &byte, nullptr, 1}).is_ok());
  Events events;
  ASSERT_TRUE(pair.ranks[0]->progress(events).is_ok());
  std::chrono::nanoseconds shortest = std::chrono::seconds(1), total{0};
  for (int i = 0; i < 50; ++i) {
    const auto start = Clock::now();
    pair.ranks[0]->wait(std::chrono::microseconds(200));
    shortest = std::min<std::chrono::nanoseconds>(shortest, Clock::now() - start);
    total += Clock::now() - start;
  }
  EXPECT_LT(shortest, milliseconds(1));
  EXPECT_GT(total, 25 * std::chrono::microseconds(200)) << "it hardly ever sleeps";
}

// The sender's kernel asks ever more rarely whether there is room, and is answered each time.
TEST(SlowReceiver, IsNotTakenForASilentHost) {
  Pair pair = connected_pair({.silence = milliseconds(1000)});
  const std::vector<std::byte> sent(32 << 20, std::byte{5});
  std::vector<std::byte> received(sent.size());
  ASSERT_TRUE(pair.channel(0).post_send({{}, sent, 1}).is_ok());
  Events events;
  for (const auto start = Clock::now(); Clock::now() - start < milliseconds(4000);) {
    ASSERT_EQ(pair.ranks[0]->progress(events).message(), "");
    pair.ranks[0]->wait(milliseconds(20));
  }
  EXPECT_TRUE(events.completed.empty()) << "it should have filled the connection";
  ASSERT_TRUE(pair.channel(1).post_receive({{}, received.size(), received.data(), nullptr, 1}).is_ok());
  std::thread sender([&pair] { EXPECT_TRUE(drive(*pair.ranks[0], 1).status.is_ok()); });
  EXPECT_TRUE(drive(*pair.ranks[1], 1).status.is_ok());
  sender.join();
  EXPECT_TRUE(received == sent);
}

// Two seconds in which nothing comes cost two milliseconds at most: a thousandth of a core.
TEST(Waiting, CostsHardlyAnything) {
  Pair pair = connected_pair({.streams = 4, .channels = 2});
  std::byte bytes[2];
  for (const int index : {0, 1}) {
    ASSERT_TRUE(pair.channel(0, index).post_receive({{}, 1, &bytes[index], nullptr, 1}).is_ok());
  }
  const auto used = [] {
    rusage usage{};
    EXPECT_EQ(::getrusage(RUSAGE_THREAD, &usage), 0);
    const auto micros = [](const timeval& time) { return time.tv_sec * 1000000 + time.tv_usec; };
    return micros(usage.ru_utime) + micros(usage.ru_stime);
  };
  Events events;
  const auto before = used();
  for (const auto start = Clock::now(); Clock::now() - start < milliseconds(2000);) {
    ASSERT_TRUE(pair.ranks[0]->progress(events).is_ok());
    pair.ranks[0]->wait(milliseconds(500));
  }
  EXPECT_LT(used() - before, 2000) << "microseconds";
}

TEST(Memory, IsTakenForWhatArrivesOnlyAndCounted) {
  Pair pair = connected_pair({.streams = 2, .channels = 2});
  EXPECT_EQ(pair.ranks[0]->memory_bytes(), 0u);
  exchange(pair, 2, 15);
  EXPECT_GT(pair.ranks[0]->memory_bytes(), 0u);
  EXPECT_LE(pair.ranks[0]->memory_bytes(), size_t{1} << 20);
}

}  // namespace
}  // namespace ccom::tcp
