// SPDX-License-Identifier: Apache-2.0
//
// Who gets in over the control port, and what a link makes of damaged frames. Strangers of every kind are turned away
// without disturbing those who belong.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <thread>

#include "liveness/control_link.h"
#include "tests/liveness/cluster.h"

namespace ccom {
namespace {

using ::testing::HasSubstr;

const Hello kHello{.communicator = 42, .tree = 0, .from_host = 1, .to_host = 0};

// Runs both sides against each other; `meddle` may change what the connector sends.
template <typename Meddle>
std::pair<Handshake, Handshake> shake(const Secret& ours, const Secret& theirs, Meddle meddle) {
  Handshake acceptor = Handshake::acceptor(ours), connector = Handshake::connector(theirs, kHello);
  connector.feed(acceptor.output());
  std::vector<std::byte> proof(connector.output().begin(), connector.output().end());
  meddle(proof);
  acceptor.feed(proof);
  if (acceptor.state() == Handshake::State::Done) connector.feed(acceptor.output());
  return {acceptor, connector};
}

TEST(Handshake, AdmitsAHolderOfTheKeyAndAgreesOnFreshKeys) {
  const Secret key = Secret::random();
  const auto nothing = [](auto&) {};
  const auto [acceptor, connector] = shake(key, key, nothing);
  ASSERT_EQ(acceptor.state(), Handshake::State::Done);
  ASSERT_EQ(connector.state(), Handshake::State::Done);
  EXPECT_EQ(acceptor.hello(), kHello);
  const auto same = [](const Secret& a, const Secret& b) { return std::ranges::equal(a.bytes(), b.bytes()); };
  EXPECT_TRUE(same(acceptor.keys().send, connector.keys().receive));
  EXPECT_TRUE(same(acceptor.keys().receive, connector.keys().send));
  EXPECT_FALSE(same(acceptor.keys().send, acceptor.keys().receive));
  EXPECT_FALSE(same(acceptor.keys().send, shake(key, key, nothing).first.keys().send));
}

TEST(Handshake, RefusesAnotherKey) {
  const auto [acceptor, connector] = shake(Secret::random(), Secret::random(), [](auto&) {});
  EXPECT_EQ(acceptor.state(), Handshake::State::Refused);
  EXPECT_TRUE(acceptor.output().empty()) << "a stranger gets no answer";
}

TEST(Handshake, RefusesAProofWithAnyByteChanged) {
  const Secret key = Secret::random();
  for (size_t at = 0; at < Handshake::kMaxBytes; ++at) {
    const auto [acceptor, connector] = shake(key, key, [at](auto& proof) { proof[at] ^= std::byte{1}; });
    EXPECT_EQ(acceptor.state(), Handshake::State::Refused) << "byte " << at;
  }
}

TEST(Handshake, RefusesARecordedProof) {
  const Secret key = Secret::random();
  std::vector<std::byte> recorded;
  (void)shake(key, key, [&recorded](auto& proof) { recorded = proof; });
  Handshake again = Handshake::acceptor(key);
  again.feed(recorded);
  EXPECT_EQ(again.state(), Handshake::State::Refused);
}

TEST(Handshake, TheConnectorRefusesAnAcceptorWithoutTheKey) {
  Handshake acceptor = Handshake::acceptor(Secret::random());
  Handshake connector = Handshake::connector(Secret::random(), kHello);
  connector.feed(acceptor.output());
  std::vector<std::byte> forged(connector.wants());
  connector.feed(forged);
  EXPECT_EQ(connector.state(), Handshake::State::Refused);
  Handshake greeted = Handshake::connector(Secret::random(), kHello);
  std::vector<std::byte> garbage(greeted.wants(), std::byte{'H'});
  greeted.feed(garbage);
  EXPECT_EQ(greeted.state(), Handshake::State::Refused);
}

struct LinkPair {
  LinkPair() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    const Secret up = Secret::random(), down = Secret::random();
    a = std::make_unique<ControlLink>(OwnedFd(fds[0]), LinkKeys{up, down});
    b = std::make_unique<ControlLink>(OwnedFd(fds[1]), LinkKeys{down, up});
  }
  std::unique_ptr<ControlLink> a, b;
};

std::vector<ControlMessage> received(ControlLink& link) {
  std::vector<ControlMessage> messages;
  link.receive(messages);
  return messages;
}

TEST(ControlLink, CarriesMessagesInOrderAndThenTheEnd) {
  LinkPair pair;
  pair.a->send({MessageType::Heartbeat});
  pair.a->send({MessageType::Error, Status(Code::Aborted, "stop").with_peers({7})});
  pair.a->send({MessageType::Goodbye});
  pair.a->finish();
  const auto messages = received(*pair.b);
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].type, MessageType::Heartbeat);
  EXPECT_EQ(messages[1].error.message(), "stop");
  EXPECT_EQ(messages[2].type, MessageType::Goodbye);
  EXPECT_TRUE(pair.b->ended());
}

std::vector<std::byte> take_raw(int fd) {
  std::vector<std::byte> bytes(8192);
  const ssize_t size = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return bytes;
}

// A man in the middle: takes what `from` sent off the wire and puts `bytes` there instead, by writing to the other
// end's peer.
TEST(ControlLink, EndsAtTheFirstDamagedFrame) {
  const ControlMessage message{MessageType::Error, Status(Code::Aborted, "stop")};
  LinkPair measure;
  measure.a->send(message);
  const size_t frame_bytes = take_raw(measure.b->fd()).size();
  for (size_t at = 0; at < frame_bytes; ++at) {
    LinkPair pair;
    pair.a->send({MessageType::Heartbeat});
    EXPECT_EQ(received(*pair.b).size(), 1u);
    pair.a->send(message);
    auto bytes = take_raw(pair.b->fd());
    bytes[at] ^= std::byte{4};
    ASSERT_GT(::send(pair.a->fd(), bytes.data(), bytes.size(), 0), 0);
    EXPECT_TRUE(received(*pair.b).empty()) << "byte " << at;
  }
}

TEST(ControlLink, RefusesARepeatedFrameAndAnEndlessOne) {
  LinkPair pair;
  pair.a->send({MessageType::Heartbeat});
  const auto bytes = take_raw(pair.b->fd());
  for (int i = 0; i < 2; ++i) ASSERT_GT(::send(pair.a->fd(), bytes.data(), bytes.size(), 0), 0);
  EXPECT_EQ(received(*pair.b).size(), 1u);
  ASSERT_TRUE(pair.b->ended());
  EXPECT_THAT(*pair.b->ended(), HasSubstr("authentication code"));

  LinkPair other;
  const uint8_t huge[8] = {2, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f};
  ASSERT_EQ(::send(other.a->fd(), huge, sizeof huge, 0), 8);
  EXPECT_TRUE(received(*other.b).empty());
  ASSERT_TRUE(other.b->ended());
  EXPECT_THAT(*other.b->ended(), HasSubstr("oversized"));
}

TEST(ControlLink, TakesFramesInAnyPieces) {
  LinkPair pair;
  pair.a->send({MessageType::Error, Status(Code::Aborted, std::string(900, 'x'))});
  const auto bytes = take_raw(pair.b->fd());
  std::vector<ControlMessage> messages;
  for (std::byte byte : bytes) {
    ASSERT_EQ(::send(pair.a->fd(), &byte, 1, 0), 1);
    pair.b->receive(messages);
  }
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].error.message(), std::string(900, 'x'));
}

TEST(ControlLink, KeepsAnErrorForAPeerThatDoesNotReadYet) {
  LinkPair pair;
  for (int i = 0; i < 2000; ++i) pair.a->send({MessageType::Error, Status(Code::Aborted, std::string(1000, 'x'))});
  ASSERT_TRUE(pair.a->has_unsent());
  pair.a->send({MessageType::Heartbeat});  // skipped
  std::vector<ControlMessage> messages;
  for (int i = 0; i < 2000 && messages.size() < 2000; ++i) {
    pair.b->receive(messages);
    pair.a->flush();
  }
  EXPECT_EQ(messages.size(), 2000u);
  EXPECT_FALSE(pair.a->has_unsent());
}

OwnedFd visit(const std::string& address) {
  auto socket = start_connect(address);
  EXPECT_TRUE(socket) << socket.error().message();
  pollfd event{.fd = socket->get(), .events = POLLOUT, .revents = 0};
  ::poll(&event, 1, 1000);
  return *std::move(socket);
}

void say(const OwnedFd& socket, std::string_view words) {
  ::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Waits for the end of a connection, reading what is sent.
bool is_dropped(const OwnedFd& socket, int within_ms) {
  const Deadline deadline = Deadline::after_ms(within_ms);
  while (!deadline.passed()) {
    pollfd event{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (::poll(&event, 1, static_cast<int>(deadline.left_ms()) + 1) <= 0) return false;
    char bytes[256];
    const ssize_t size = ::recv(socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN)) return true;
  }
  return false;
}

TEST(ControlPort, StrangersAreDroppedAndDisturbNobody) {
  test::Cluster cluster({1, 1});
  const auto addresses = cluster.addresses();
  Status root;
  std::thread parent([&] { root = cluster[0].connect(addresses, Deadline::after_ms(20000)); });
  std::vector<OwnedFd> loud, silent;
  for (int i = 0; i < 20; ++i) {
    loud.push_back(visit(addresses[0]));
    say(loud.back(),
        i % 2 == 0 ? "GET / HTTP/1.1\r\nHost: here\r\n" + std::string(200, ' ') : std::string(100000, '\xff'));
    silent.push_back(visit(addresses[0]));
    if (i % 2 == 0) say(silent.back(), "x");
  }
  for (const OwnedFd& accepted : loud) EXPECT_TRUE(is_dropped(accepted, 2000));
  EXPECT_TRUE(is_dropped(silent.front(), 4000)) << "one who says nothing is dropped after two seconds";
  const auto start = Clock::now();
  EXPECT_TRUE(cluster[1].connect(addresses, Deadline::after_ms(10000)).is_ok());
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(2));
  parent.join();
  EXPECT_TRUE(root.is_ok()) << root.message();
  (void)cluster[0].report(Status(Code::Aborted, "x"));
  EXPECT_TRUE(cluster.all_fail(2000));
}

TEST(ControlPort, AFloodOfIdleConnectionsDoesNotKeepAChildOut) {
  test::Cluster cluster({1, 1});
  const auto addresses = cluster.addresses();
  std::vector<OwnedFd> idle;
  std::thread parent([&] { EXPECT_TRUE(cluster[0].connect(addresses, Deadline::after_ms(20000)).is_ok()); });
  for (int i = 0; i < 300; ++i) idle.push_back(visit(addresses[0]));
  EXPECT_TRUE(cluster[1].connect(addresses, Deadline::after_ms(10000)).is_ok());
  parent.join();
}

TEST(ControlPort, AChildOfAnotherJobStaysOut) {
  test::Cluster ours({1, 1}), theirs({1, 1});
  Status root, stranger;
  std::thread parent([&] { root = ours[0].connect(ours.addresses(), Deadline::after_ms(700)); });
  stranger = theirs[1].connect(ours.addresses(), Deadline::after_ms(500));
  parent.join();
  EXPECT_EQ(root.code(), Code::Timeout);
  EXPECT_EQ(stranger.code(), Code::Timeout);
}

TEST(ControlPort, NothingListensAfterConnect) {
  test::Cluster cluster({1, 1});
  const auto addresses = cluster.addresses();
  ASSERT_TRUE(cluster.connect().is_ok());
  const OwnedFd socket = visit(addresses[0]);
  EXPECT_EQ(connect_outcome(socket), ECONNREFUSED);
}

}  // namespace
}  // namespace ccom
