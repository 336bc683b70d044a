// SPDX-License-Identifier: Apache-2.0
//
// What happens when the network damages or cuts, when a peer dies, leaves or lies: a named error, and no byte where it
// does not belong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "tests/harness/child.h"
#include "tests/transport_tcp/raw.h"

namespace ccom::tcp {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kHandshakeBytes = 2 * sizeof(HandshakeMessage);  // by the dialler, rank 1

class CountingSink final : public Sink {
 public:
  void consume(size_t, ConstBytes bytes) override { seen_bytes += bytes.size(); }
  size_t seen_bytes = 0;
};

// Rank 1 reaches rank 0 through a proxy.
struct ProxiedPair {
  ProxiedPair(const Proxy::Tamper& tamper, bool tls, const std::vector<Rank>& local_ranks = {})
      : key(Secret::random()) {
    for (Rank rank : {0, 1}) {
      TcpConfig config = config_of(rank, key);
      config.tls = tls;
      config.local_ranks = local_ranks;
      pair.ranks[rank] = make(config);
    }
    proxy = std::make_unique<Proxy>(pair.ranks[0]->address(), tamper);
    for (const Status& status : join_all({{pair.ranks[0].get(), {{1, pair.ranks[1]->address(), 1}}},
                                          {pair.ranks[1].get(), {{0, proxy->address() + (tls ? " tls" : ""), 1}}}}))
      EXPECT_TRUE(status.is_ok()) << status.message();
  }
  const Secret key;
  Pair pair;
  std::unique_ptr<Proxy> proxy;
};

// The proxy flips a bit of byte `position`, counted after the handshake, or cuts there.
struct DamagedPair : ProxiedPair {
  enum class Kind { Flip, Cut };
  DamagedPair(Kind kind, uint64_t position, bool tls = false, const std::vector<Rank>& local_ranks = {})
      : ProxiedPair(
            [kind, at = kHandshakeBytes + position](uint64_t start, Bytes bytes) {
              if (at < start || at >= start + bytes.size()) return true;
              bytes[at - start] ^= std::byte{0x10};
              return kind == Kind::Flip;
            },
            tls, local_ranks) {}
};

// Rank 1 sends `size_bytes`; what rank 0 makes of it.
Outcome receive_damaged(DamagedPair& damaged, size_t size_bytes, Sink* sink) {
  const std::vector<std::byte> sent(size_bytes, std::byte{7});
  std::vector<std::byte> target(size_bytes);
  EXPECT_TRUE(damaged.pair.channel(0).post_receive({{}, size_bytes, sink ? nullptr : target.data(), sink, 1}).is_ok());
  EXPECT_TRUE(damaged.pair.channel(1).post_send({{}, sent, 1}).is_ok());
  std::thread sender([&damaged] { drive(*damaged.pair.ranks[1], 1); });
  Outcome outcome = drive(*damaged.pair.ranks[0], 1);
  damaged.pair.ranks[0]->stop();
  sender.join();
  return outcome;
}

TEST(Checksum, NamesPeerMessageAndOffsetOfDamagedPayload) {
  DamagedPair damaged(DamagedPair::Kind::Flip,
                      sizeof(FragmentHeader) + kMaxFragmentBytes + sizeof(FragmentHeader) + 1000);
  const Outcome outcome = receive_damaged(damaged, 1200000, nullptr);
  EXPECT_EQ(outcome.status.code(), Code::TransportError);
  EXPECT_THAT(outcome.status.peers(), ElementsAre(1));
  EXPECT_THAT(outcome.status.message(), HasSubstr("rank 1 at 127.0.0.1:"));
  EXPECT_THAT(outcome.status.message(), HasSubstr("checksum (message 0, offset 524288, 524288 bytes)"));
  EXPECT_TRUE(outcome.events.completed.empty());
}

TEST(Checksum, KeepsDamagedPayloadFromASink) {
  CountingSink sink;
  DamagedPair damaged(DamagedPair::Kind::Flip, 2 * sizeof(FragmentHeader) + kMaxFragmentBytes + 99);
  EXPECT_EQ(receive_damaged(damaged, 1200000, &sink).status.code(), Code::TransportError);
  EXPECT_EQ(sink.seen_bytes, kMaxFragmentBytes) << "the fragment before it was fine";
}

// No wire is between them.
TEST(Checksum, IsNotMadeForThePayloadOfRanksOfOneHost) {
  DamagedPair damaged(DamagedPair::Kind::Flip, sizeof(FragmentHeader) + 5, false, {0, 1});
  const Outcome outcome = receive_damaged(damaged, 1000, nullptr);
  EXPECT_TRUE(outcome.status.is_ok()) << outcome.status.message();
  EXPECT_EQ(outcome.events.completed.size(), 1U) << "with a flipped bit that nobody has looked for";
}

TEST(Checksum, NoticesADamagedHeader) {
  for (const uint64_t position : {0, 17, 40, 48, 56, 64, 68, 72, 76}) {
    DamagedPair damaged(DamagedPair::Kind::Flip, position);
    const Outcome outcome = receive_damaged(damaged, 64, nullptr);
    EXPECT_EQ(outcome.status.code(), Code::TransportError) << position;
    EXPECT_FALSE(outcome.events.mismatch.has_value()) << "damage is not taken for another call";
  }
}

TEST(Checksum, OfTlsNoticesDamageAnywhere) {
  for (const uint64_t position : {20000, 300000, 500001}) {
    CountingSink sink;
    DamagedPair damaged(DamagedPair::Kind::Flip, position, true);
    const Outcome outcome = receive_damaged(damaged, 1200000, &sink);
    EXPECT_EQ(outcome.status.code(), Code::TransportError) << outcome.status.message();
    EXPECT_THAT(outcome.status.peers(), ElementsAre(1));
    EXPECT_THAT(outcome.status.message(), HasSubstr("data that fails TLS verification"));
    EXPECT_LE(sink.seen_bytes, position);
  }
}

// How many of the 16-byte blocks of a message of random bytes stand in what a proxy has recorded.
size_t blocks_on_the_wire(bool tls) {
  constexpr size_t kBlock = 16;
  std::string recorded;
  std::string message(64 << 10, '\0');
  std::mt19937 random(7);
  for (char& byte : message) byte = static_cast<char>(random());
  std::vector<std::byte> target(message.size());
  {
    ProxiedPair made(
        [&recorded](uint64_t, Bytes bytes) {
          recorded.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          return true;
        },
        tls);
    EXPECT_TRUE(made.pair.channel(0).post_receive({{}, target.size(), target.data(), nullptr, 1}).is_ok());
    EXPECT_TRUE(made.pair.channel(1).post_send({{}, std::as_bytes(std::span(message)), 1}).is_ok());
    std::thread sender([&made] { drive(*made.pair.ranks[1], 1); });
    EXPECT_EQ(drive(*made.pair.ranks[0], 1).events.completed.size(), 1U);
    sender.join();
  }
  EXPECT_EQ(std::memcmp(target.data(), message.data(), message.size()), 0);
  EXPECT_GT(recorded.size(), message.size());
  size_t found = 0;
  for (size_t at = 0; at < message.size(); at += kBlock)
    found += recorded.find(message.substr(at, kBlock)) != std::string::npos ? 1 : 0;
  return found;
}

TEST(TlsOnTheWire, ShowsNoPartOfAMessageThatStandsInTheOpenWithoutIt) {
  EXPECT_EQ(blocks_on_the_wire(true), 0U);
  EXPECT_EQ(blocks_on_the_wire(false), 4096U);
}

TEST(BrokenConnection, IsNamedWhenItEndsWithinAMessage) {
  DamagedPair damaged(DamagedPair::Kind::Cut, 5000);
  const Outcome outcome = receive_damaged(damaged, 100000, nullptr);
  EXPECT_EQ(outcome.status.code(), Code::RemoteError) << outcome.status.message();
  EXPECT_THAT(outcome.status.peers(), ElementsAre(1));
}

TEST(DepartedPeer, IsReportedOnlyOnceSomethingIsPosted) {
  for (const int streams : {1, 3}) {
    for (const bool by_send : {false, true}) {
      Pair pair = connected_pair({.streams = streams});
      pair.ranks[1].reset();
      Events events;
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(pair.ranks[0]->progress(events).is_ok());
        pair.ranks[0]->wait(milliseconds(1));
      }
      std::byte byte{};
      Status status = by_send ? pair.channel(0).post_send({{}, {&byte, 1}, 1})
                              : pair.channel(0).post_receive({{}, 1, &byte, nullptr, 1});
      // A first send may still fall into the void; it must not go on so.
      for (int i = 0; i < 1000 && status.is_ok(); ++i) {
        status = pair.ranks[0]->progress(events);
        if (status.is_ok() && by_send) status = pair.channel(0).post_send({{}, {&byte, 1}, 1});
        pair.ranks[0]->wait(milliseconds(1));
      }
      EXPECT_EQ(status.code(), Code::RemoteError) << status.message();
      EXPECT_THAT(status.peers(), ElementsAre(1));
      EXPECT_FALSE(pair.ranks[0]->progress(events).is_ok()) << "errors are final";
    }
  }
}

TEST(DepartedPeer, EndsASendThatFillsTheConnection) {
  Pair pair = connected_pair();
  const std::vector<std::byte> large(64 << 20);
  ASSERT_TRUE(pair.channel(0).post_send({{}, large, 1}).is_ok());
  Events events;
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(pair.ranks[0]->progress(events).is_ok());
  std::thread leaver([&pair] { pair.ranks[1].reset(); });
  const Outcome outcome = drive(*pair.ranks[0], 1);
  leaver.join();
  EXPECT_EQ(outcome.status.code(), Code::RemoteError) << outcome.status.message();
  EXPECT_THAT(outcome.status.peers(), ElementsAre(1));
}

// The child is rank 1: it connects, says so, and is killed while the parent waits for a message.
TEST(DeadProcess, IsNamedWithItsAddress) {
  const Secret key = Secret::random();
  const auto rank0 = make(config_of(0, key));
  Child child([&](const PacketSocket& test) {
    auto rank1 = make_tcp_transport(config_of(1, key));
    test.send((*rank1)->address());
    (void)(*rank1)->connect(std::vector<Peer>{{0, rank0->address(), 1}}, Deadline::after(kPatience));
    return ::pause();
  });
  const std::string address = child.receive();
  ASSERT_TRUE(rank0->connect(std::vector<Peer>{{1, address, 1}}, Deadline::after(kPatience)).is_ok());
  std::byte byte;
  ASSERT_TRUE((*rank0->channel(1, 0))->post_receive({{}, 1, &byte, nullptr, 1}).is_ok());
  Events events;
  EXPECT_TRUE(rank0->progress(events).is_ok());
  child.kill();
  const Outcome outcome = drive(*rank0, 1);
  EXPECT_EQ(outcome.status.code(), Code::RemoteError);
  EXPECT_THAT(outcome.status.peers(), ElementsAre(1));
  EXPECT_THAT(outcome.status.message(), HasSubstr("rank 1 at " + address));
}

// A peer that holds the key, but lies in its headers. Rank 0 expects two messages of 1000 and 600000 bytes.
struct Lie {
  const char* what;
  FragmentHeader header;
  size_t payload_bytes;
};

Status tell(const Lie& lie, bool& is_mismatch) {
  const TcpConfig config = config_of(0, Secret::random());
  const auto rank0 = make(config);
  RawPeer peer(rank0->address(), config);
  std::thread proving([&peer] { EXPECT_TRUE(peer.is_admitted()); });
  EXPECT_TRUE(rank0->connect(std::vector<Peer>{{1, "127.0.0.1:9", 1}}, Deadline::after(kPatience)).is_ok());
  proving.join();
  std::vector<std::byte> first(1000), second(600000);
  Channel& channel = **rank0->channel(1, 0);
  EXPECT_TRUE(channel.post_receive({{}, first.size(), first.data(), nullptr, 1}).is_ok());
  EXPECT_TRUE(channel.post_receive({{}, second.size(), second.data(), nullptr, 2}).is_ok());
  const std::vector<std::byte> payload(kMaxFragmentBytes, std::byte{0xEE});
  EXPECT_TRUE(peer.write({.size_bytes = 1000, .length_bytes = 1000}, ConstBytes(payload).first(1000)));
  EXPECT_TRUE(peer.write({.message = 1, .size_bytes = 600000, .length_bytes = kMaxFragmentBytes}, payload));
  EXPECT_TRUE(peer.write(lie.header, ConstBytes(payload).first(lie.payload_bytes)));
  Outcome outcome = drive(*rank0, 2);
  is_mismatch = outcome.events.mismatch.has_value();
  EXPECT_THAT(outcome.events.completed, ElementsAre(1));
  return outcome.status;
}

TEST(LyingPeer, IsFoundOutBeforeAByteIsTaken) {
  constexpr uint32_t kFull = kMaxFragmentBytes;
  constexpr uint64_t kLast = 600000 / kFull * kFull;  // where the last fragment begins
  const Lie kLies[] = {
      {"the same fragment again", {.message = 1, .size_bytes = 600000, .length_bytes = kFull}, kFull},
      {"beyond the end",
       {.message = 1, .size_bytes = 600000, .offset_bytes = kLast + kFull, .length_bytes = kFull},
       kFull},
      {"an offset that wraps",
       {.message = 1, .size_bytes = 600000, .offset_bytes = ~uint64_t{0} - kFull + 1, .length_bytes = kFull},
       kFull},
      {"off the grid", {.message = 1, .size_bytes = 600000, .offset_bytes = 16, .length_bytes = kFull}, kFull},
      {"too long", {.message = 1, .size_bytes = 600000, .offset_bytes = kLast, .length_bytes = kFull}, kFull},
      {"a length without end", {.message = 1, .size_bytes = 600000, .offset_bytes = kFull, .length_bytes = ~0u}, 64},
      {"too short", {.message = 1, .size_bytes = 600000, .offset_bytes = kFull, .length_bytes = 16}, 16},
      {"an old message", {.message = 0, .size_bytes = 1000, .length_bytes = 1000}, 1000},
      {"no header at all", {.message = 1, .magic = 0}, 0},
  };
  for (const Lie& lie : kLies) {
    bool is_mismatch = false;
    const Status status = tell(lie, is_mismatch);
    EXPECT_EQ(status.code(), Code::TransportError) << lie.what << ": " << status.message();
    EXPECT_THAT(status.peers(), ElementsAre(1)) << lie.what;
    EXPECT_FALSE(is_mismatch) << lie.what;
  }
  bool is_mismatch = false;
  EXPECT_TRUE(
      tell({"another size", {.message = 1, .size_bytes = 600001, .offset_bytes = kFull, .length_bytes = kFull}, kFull},
           is_mismatch)
          .is_ok());
  EXPECT_TRUE(is_mismatch);
}

}  // namespace
}  // namespace ccom::tcp
