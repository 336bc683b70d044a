// SPDX-License-Identifier: Apache-2.0
//
// TLS on a socket: who gets through the handshake, what happens to bytes that were changed on the way, connections
// that are full, keys that wear out. Over pairs of local sockets, both ends driven by the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <random>

#include "base/time.h"
#include "base/tls.h"

namespace ccom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Both ends of a connection. The one with `key` connects, the one with `other_key` accepts.
class TlsPair {
 public:
  TlsPair(const Secret& key, const Secret& other_key, uint64_t records_per_key = TlsContext::kRecordsPerKey)
      : contexts_{*TlsContext::create(key, records_per_key), *TlsContext::create(other_key, records_per_key)} {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    ends[0] = Tls::make(*contexts_[0], fds[0], Tls::Side::Connects);
    ends[1] = Tls::make(*contexts_[1], fds[1], Tls::Side::Accepts);
  }
  explicit TlsPair(const Secret& key, uint64_t records_per_key = TlsContext::kRecordsPerKey)
      : TlsPair(key, key, records_per_key) {}
  ~TlsPair() {
    for (const int fd : fds) ::close(fd);
  }
  // How each side's handshake went.
  std::array<Tls::Step, 2> shake_hands() {
    std::array<Tls::Step, 2> steps{Tls::Step::NeedsRead, Tls::Step::NeedsRead};
    for (int turn = 0; turn < 20; ++turn) {
      for (const size_t side : {0, 1}) {
        const bool goes_on = steps[side] != Tls::Step::Done && steps[side] != Tls::Step::Failed;
        if (goes_on) steps[side] = ends[side]->handshake();
      }
    }
    return steps;
  }
  ssize_t send(size_t side, ConstBytes bytes) {
    const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    return ends[side]->send({&part, 1});
  }
  ssize_t receive(size_t side, Bytes bytes) {
    const iovec part{bytes.data(), bytes.size()};
    return ends[side]->receive({&part, 1});
  }

  int fds[2] = {-1, -1};
  std::unique_ptr<Tls> ends[2];

 private:
  std::unique_ptr<TlsContext> contexts_[2];
};

constexpr std::array kBothDone{Tls::Step::Done, Tls::Step::Done};

std::vector<std::byte> noise(size_t size_bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size_bytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(Tls, LetsHoldersOfTheKeyInAndNobodyElse) {
  const Secret key = Secret::random();
  EXPECT_EQ(TlsPair(key).shake_hands(), kBothDone);
  for (const Tls::Step step : TlsPair(key, Secret::random()).shake_hands()) EXPECT_NE(step, Tls::Step::Done);
}

// Both directions at once through full connections, in pieces of all sizes; every 16 records a new key.
TEST(Tls, CarriesEveryByteInOrderThroughFullConnectionsAndChangesOfKeys) {
  TlsPair pair(Secret::random(), 16);
  ASSERT_EQ(pair.shake_hands(), kBothDone);
  const std::vector<std::byte> sent[2] = {noise(5 << 20, 1), noise(5 << 20, 2)};
  std::vector<std::byte> received[2] = {std::vector<std::byte>(5 << 20), std::vector<std::byte>(5 << 20)};
  size_t out[2] = {0, 0}, in[2] = {0, 0};
  std::mt19937 random(3);
  size_t full = 0, wanted[2] = {1, 1};
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  while ((in[0] < received[0].size() || in[1] < received[1].size()) && !deadline.passed()) {
    for (const size_t side : {0, 1}) {
      const ConstBytes rest = ConstBytes(sent[side]).subspan(out[side]);
      const ssize_t taken = pair.send(side, rest.first(std::min(wanted[side], rest.size())));
      if (taken < 0) {
        ASSERT_EQ(errno, EAGAIN);
        ++full;
      } else {
        out[side] += static_cast<size_t>(taken);
        wanted[side] -= static_cast<size_t>(taken);
        if (wanted[side] == 0) wanted[side] = random() % 300000 + 1;  // the rest has to be tried again as it is
      }
      if (random() % 4 != 0) continue;
      const Bytes free = Bytes(received[side]).subspan(in[side]);
      const ssize_t got = pair.receive(side, free.first(std::min<size_t>(random() % 200000 + 1, free.size())));
      ASSERT_TRUE(got >= 0 || errno == EAGAIN);
      if (got > 0) in[side] += static_cast<size_t>(got);
    }
  }
  EXPECT_GT(full, 10u) << "the connections were never full";
  EXPECT_TRUE(received[0] == sent[1]);
  EXPECT_TRUE(received[1] == sent[0]);
}

TEST(Tls, JoinsAHeaderAndWhatFollowsItInOneRecord) {
  TlsPair pair(Secret::random());
  ASSERT_EQ(pair.shake_hands(), kBothDone);
  const std::vector<std::byte> header = noise(80, 4), payload = noise(1000, 5);
  const std::array<iovec, 2> parts{{{const_cast<std::byte*>(header.data()), header.size()},
                                    {const_cast<std::byte*>(payload.data()), payload.size()}}};
  const uint64_t before = pair.ends[0]->sent_bytes();
  EXPECT_EQ(pair.ends[0]->send(parts), 1080);
  EXPECT_EQ(pair.ends[0]->sent_bytes() - before, 1080u + 22u) << "one record has 22 bytes of its own";
  std::vector<std::byte> received(1080);
  EXPECT_EQ(pair.receive(1, received), 1080);
  EXPECT_TRUE(std::ranges::equal(std::span(received).first(80), header));
  EXPECT_TRUE(std::ranges::equal(std::span(received).subspan(80), payload));
}

TEST(Tls, HoldsWhatItHasReadButNotHandedOut) {
  TlsPair pair(Secret::random());
  ASSERT_EQ(pair.shake_hands(), kBothDone);
  std::array<std::byte, 30> bytes{};
  EXPECT_FALSE(pair.ends[1]->holds_input());
  ASSERT_EQ(pair.send(0, ConstBytes(bytes).first(10)), 10);
  ASSERT_EQ(pair.send(0, ConstBytes(bytes).first(20)), 20);
  ASSERT_EQ(pair.receive(1, Bytes(bytes).first(10)), 10);
  EXPECT_TRUE(pair.ends[1]->holds_input()) << "the second record came with the first";
  ASSERT_EQ(pair.receive(1, bytes), 20);
  EXPECT_FALSE(pair.ends[1]->holds_input());
}

TEST(Tls, HidesBytesAndRefusesThoseThatWereChangedOnTheWay) {
  TlsPair pair(Secret::random());
  ASSERT_EQ(pair.shake_hands(), kBothDone);
  std::array<std::byte, 100> bytes{};
  ASSERT_EQ(pair.send(0, bytes), 100);
  std::array<std::byte, 200> wire;
  wire.fill(std::byte{1});
  const ssize_t size = ::recv(pair.fds[1], wire.data(), wire.size(), 0);
  ASSERT_EQ(size, 122);
  EXPECT_TRUE(std::ranges::search(wire, std::span(bytes).first(8)).empty()) << "eight zeros stand in the open";
  wire[60] ^= std::byte{1};
  ASSERT_EQ(::send(pair.fds[0], wire.data(), static_cast<size_t>(size), 0), size);
  EXPECT_EQ(pair.receive(1, bytes), -1);
  EXPECT_EQ(errno, EBADMSG);
}

TEST(Tls, EndsWithTheConnectionAndNeverBySignal) {
  TlsPair pair(Secret::random());
  ASSERT_EQ(pair.shake_hands(), kBothDone);
  std::array<std::byte, 10> bytes{};
  ASSERT_EQ(pair.send(0, bytes), 10);
  ASSERT_EQ(::shutdown(pair.fds[0], SHUT_RDWR), 0);
  EXPECT_EQ(pair.receive(1, bytes), 10);
  EXPECT_EQ(pair.receive(1, bytes), 0);
  EXPECT_EQ(pair.receive(1, bytes), 0) << "and stays so";
  EXPECT_EQ(pair.send(1, bytes), -1);
  EXPECT_EQ(errno, EPIPE);
}

}  // namespace
}  // namespace ccom
