// SPDX-License-Identifier: Apache-2.0
//
// Channels that are connected when both sides have asked for them (TcpConfig::on_use).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/resources.h"
#include "tests/transport_tcp/raw.h"

namespace ccom::tcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kChannels = 2;

// Ranks in one thread, each of which knows all others.
class OnUse : public ::testing::Test {
 protected:
  void start(int ranks, int absent = 0) {
    const Secret key = Secret::random();
    for (Rank rank = 0; rank < ranks; ++rank) {
      TcpConfig config = config_of(rank, key);
      config.on_use = true;
      ranks_.push_back(make(config));
    }
    for (Rank rank = 0; rank < ranks; ++rank) {
      std::vector<Peer> peers;
      for (Rank other = 0; other < ranks; ++other)
        if (other != rank) peers.push_back({other, at(other).address(), kChannels});
      for (int i = 0; i < absent; ++i) peers.push_back({ranks + i, "127.0.0.1:9", kChannels});
      EXPECT_EQ(at(rank).connect(peers, Deadline::after_ms(0)).message(), "");
    }
  }
  Transport& at(Rank rank) { return *ranks_[static_cast<size_t>(rank)]; }
  bool listens(Rank rank) { return RawSocket::to(at(rank).address()).is_open(); }
  Channel& channel(Rank rank, Rank peer, int index = 0) { return **at(rank).channel(peer, index); }

  // Lets all ranks go on until the one has that many completions, or for that long.
  size_t complete(Rank awaited, size_t completions, std::chrono::milliseconds longest = std::chrono::seconds(20)) {
    Events of_awaited;
    for (const Deadline deadline = Deadline::after(longest);
         of_awaited.completed.size() < completions && !deadline.passed();) {
      for (Rank rank = 0; rank < static_cast<Rank>(ranks_.size()); ++rank) {
        Events others;
        EXPECT_EQ(at(rank).progress(rank == awaited ? of_awaited : others).message(), "");
      }
    }
    return of_awaited.completed.size();
  }

  // One message, of which the receiver learns.
  void send(Rank from, Rank to, int index = 0) {
    std::vector<std::byte> sent(100'000, std::byte{7}), received(sent.size());
    ASSERT_TRUE(channel(from, to, index).post_send({{}, sent, 1}).is_ok());
    ASSERT_TRUE(channel(to, from, index)
                    .post_receive({.expected = {}, .size_bytes = received.size(), .target = received.data()})
                    .is_ok());
    EXPECT_EQ(complete(to, 1), 1U);
    EXPECT_EQ(sent, received);
  }

  std::vector<std::unique_ptr<Transport>> ranks_;
};

TEST_F(OnUse, ARankHasTheConnectionsThatItUses) {
  start(8);
  const int before = open_descriptors();
  send(0, 1);
  send(1, 0);
  EXPECT_EQ(open_descriptors() - before, 2) << "both ends of one connection";
  send(6, 2, 1);
  EXPECT_EQ(open_descriptors() - before, 4);
}

TEST_F(OnUse, NothingListensButWhileSomebodyIsAwaited) {
  start(3);
  EXPECT_FALSE(listens(0) || listens(1) || listens(2));
  channel(0, 1);
  EXPECT_TRUE(listens(0)) << "rank 1 has to connect";
  channel(1, 0);
  EXPECT_FALSE(listens(1)) << "it is the one that connects";
  send(0, 1);
  EXPECT_FALSE(listens(0));
  channel(0, 2);
  EXPECT_TRUE(listens(0)) << "at the same port, beside the connection that it has";
  send(2, 0);
  EXPECT_FALSE(listens(0));
  send(1, 0);
}

TEST_F(OnUse, OperationsWaitForAPeerThatAsksLate) {
  start(2);
  std::byte sent{5}, received{};
  for (const Rank early : {0, 1}) {
    const Rank late = 1 - early;
    ASSERT_TRUE(channel(early, late, early).post_send({{}, {&sent, 1}, 1}).is_ok());
    EXPECT_EQ(complete(early, 1, std::chrono::milliseconds(200)), 0U);
    ASSERT_TRUE(
        channel(late, early, early).post_receive({.expected = {}, .size_bytes = 1, .target = &received}).is_ok());
    EXPECT_EQ(complete(late, 1), 1U);
    EXPECT_EQ(std::exchange(received, {}), sent);
  }
}

TEST_F(OnUse, StopEndsTheWaitForAPeer) {
  start(2);
  std::byte sent{};
  ASSERT_TRUE(channel(0, 1).post_send({{}, {&sent, 1}, 1}).is_ok());
  EXPECT_TRUE(listens(0));
  at(0).stop();
  EXPECT_FALSE(listens(0));
  Events events;
  EXPECT_FALSE(at(0).progress(events).is_ok());
}

TEST_F(OnUse, StrangersGetNothing) {
  start(2);
  channel(0, 1);
  const RawSocket stranger = RawSocket::to(at(0).address());
  ASSERT_TRUE(stranger.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  send(0, 1);
  std::byte byte;
  EXPECT_EQ(stranger.read({&byte, 1}), 0U);
}

TEST_F(OnUse, WhomItDoesNotKnowItDoesNotConnect) {
  start(2);
  for (const Rank peer : {-1, 0, 2}) EXPECT_FALSE(at(0).channel(peer, 0));
  EXPECT_FALSE(at(0).channel(1, kChannels));
}

// Of ten thousand peers a rank keeps an address each, and nothing more.
TEST_F(OnUse, PeersThatAreNotUsedCostFewBytes) {
  constexpr int kPeers = 10'000;
  start(2, kPeers);
  EXPECT_LT(at(0).memory_bytes(), kPeers * 50U);
  EXPECT_LT(open_descriptors(), 100);
  send(0, 1);
}

TEST_F(OnUse, APeerWithOtherSettingsIsNamed) {
  TcpConfig one = config_of(0, Secret::random());
  one.on_use = true;
  TcpConfig other = one;
  other.rank = 1;
  other.crc = !one.crc;
  const auto rank0 = make(one), rank1 = make(other);
  ASSERT_TRUE(rank0->connect(std::vector<Peer>{{1, rank1->address(), 1}}, Deadline::after_ms(0)).is_ok());
  ASSERT_TRUE(rank1->connect(std::vector<Peer>{{0, rank0->address(), 1}}, Deadline::after_ms(0)).is_ok());
  ASSERT_TRUE(rank0->channel(1, 0) && rank1->channel(0, 0));
  Status first, second;
  for (const Deadline deadline = Deadline::after(kPatience); (first.is_ok() || second.is_ok()) && !deadline.passed();) {
    Events events;
    if (first.is_ok()) first = rank0->progress(events);
    if (second.is_ok()) second = rank1->progress(events);
  }
  EXPECT_THAT(first.message(), HasSubstr("CCOM_CRC"));
  EXPECT_THAT(second.message(), HasSubstr("CCOM_CRC"));
  EXPECT_THAT(first.peers(), ElementsAre(1));
  EXPECT_THAT(second.peers(), ElementsAre(0));
}

}  // namespace
}  // namespace ccom::tcp
