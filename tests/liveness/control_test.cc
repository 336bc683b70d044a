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

#include <climits>
#include <cstring>
#include <thread>

#include "base/handshake.h"
#include "liveness/control_handshake.h"
#include "liveness/control_link.h"
#include "liveness/sockets.h"
#include "tests/base_network/free_ports.h"
#include "tests/base_network/strangers.h"
#include "tests/liveness/cluster.h"

namespace ccom {
namespace {

using ::testing::HasSubstr;

constexpr StreamId kStream{42, 1};

struct LinkPair {
  LinkPair() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    const Secret up = Secret::random(), down = Secret::random();
    left = std::make_shared<ControlConnection>(ControlSocket(Descriptor(fds[0])), ConnectionTerms{up, down, 7});
    right = std::make_shared<ControlConnection>(ControlSocket(Descriptor(fds[1])), ConnectionTerms{down, up, 7});
    a = std::make_unique<ControlLink>(left, kStream, nullptr);
    b = std::make_unique<ControlLink>(right, kStream, nullptr);
  }
  void send(const ControlMessage& message) const {
    a->send(message);
    a->flush();
  }
  std::shared_ptr<ControlConnection> left, right;
  std::unique_ptr<ControlLink> a, b;
};

std::vector<ControlMessage> received(ControlLink& link) {
  std::vector<ControlMessage> messages;
  link.connection().receive();
  link.receive(messages);
  return messages;
}

TEST(ControlLink, CarriesMessagesInOrderAndThenTheEnd) {
  LinkPair pair;
  pair.send({MessageType::Heartbeat});
  pair.send({MessageType::Error, Status(Code::Aborted, "stop").with_peers({7})});
  pair.a->send({MessageType::Goodbye});
  pair.a->flush();
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
  measure.send(message);
  const size_t frame_bytes = take_raw(measure.right->fd()).size();
  for (size_t at = 0; at < frame_bytes; ++at) {
    LinkPair pair;
    pair.send({MessageType::Heartbeat});
    EXPECT_EQ(received(*pair.b).size(), 1u);
    pair.send(message);
    auto bytes = take_raw(pair.right->fd());
    bytes[at] ^= std::byte{4};
    ASSERT_GT(::send(pair.left->fd(), bytes.data(), bytes.size(), 0), 0);
    EXPECT_TRUE(received(*pair.b).empty()) << "byte " << at;
  }
}

// The board keeps rank + 1 of each lost rank: -1 took a place and stood for nobody, and the greatest number overflowed.
TEST(ControlLink, EndsAtALossThatNamesNoRank) {
  for (const std::vector<int>& nobody : std::vector<std::vector<int>>{{}, {-1}, {3, -1}, {INT_MAX}}) {
    LinkPair pair;
    pair.send({MessageType::Loss, error(Code::RemoteError, "nobody died").with_peers(nobody)});
    EXPECT_TRUE(received(*pair.b).empty());
    EXPECT_TRUE(pair.b->ended());
  }
}

TEST(ControlLink, RefusesARepeatedFrameAndAnEndlessOne) {
  LinkPair pair;
  pair.send({MessageType::Heartbeat});
  const auto bytes = take_raw(pair.right->fd());
  for (int i = 0; i < 2; ++i) ASSERT_GT(::send(pair.left->fd(), bytes.data(), bytes.size(), 0), 0);
  EXPECT_EQ(received(*pair.b).size(), 1u);
  ASSERT_TRUE(pair.b->ended());
  EXPECT_THAT(*pair.b->ended(), HasSubstr("authentication code"));

  LinkPair other;
  const uint8_t huge[16] = {2, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f};
  ASSERT_EQ(::send(other.left->fd(), huge, sizeof huge, 0), 16);
  EXPECT_TRUE(received(*other.b).empty());
  ASSERT_TRUE(other.b->ended());
  EXPECT_THAT(*other.b->ended(), HasSubstr("oversized"));
}

TEST(ControlLink, TakesFramesInAnyPieces) {
  LinkPair pair;
  pair.send({MessageType::Error, Status(Code::Aborted, std::string(900, 'x'))});
  const auto bytes = take_raw(pair.right->fd());
  std::vector<ControlMessage> messages;
  for (std::byte byte : bytes) {
    ASSERT_EQ(::send(pair.left->fd(), &byte, 1, 0), 1);
    pair.right->receive();
    pair.b->receive(messages);
  }
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].error.message(), std::string(900, 'x'));
}

TEST(ControlLink, KeepsAnErrorForAPeerThatDoesNotReadYet) {
  LinkPair pair;
  for (int i = 0; i < 2000; ++i) pair.send({MessageType::Error, Status(Code::Aborted, std::string(1000, 'x'))});
  ASSERT_TRUE(pair.left->has_unsent());
  pair.send({MessageType::Heartbeat});  // skipped
  std::vector<ControlMessage> messages;
  for (int i = 0; i < 2000 && messages.size() < 2000; ++i) {
    pair.right->receive();
    pair.b->receive(messages);
    pair.a->flush();
  }
  EXPECT_EQ(messages.size(), 2000u);
  EXPECT_FALSE(pair.left->has_unsent());
}

Descriptor visit(const std::string& address) {
  auto socket = start_connect(address);
  EXPECT_TRUE(socket) << socket.error().message();
  pollfd event{.fd = socket->get(), .events = POLLOUT, .revents = 0};
  ::poll(&event, 1, 1000);
  return *std::move(socket);
}

void say(const Descriptor& socket, std::string_view words) {
  ::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Waits for the end of a connection, reading what is sent.
bool is_dropped(const Descriptor& socket, int within_ms) {
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
  std::vector<Descriptor> loud, slow, unheard;
  for (int i = 0; i < 20; ++i) {
    loud.push_back(visit(addresses[0].control));
    say(loud.back(), i % 2 == 0 ? "GET" : "CSHK" + std::string(100000, '\xff'));
    slow.push_back(visit(addresses[0].control));
    say(slow.back(), "C");
    unheard.push_back(visit(addresses[0].control));
    if (i % 2 == 0) say(unheard.back(), "GET / HTTP/1.1\r\nHost: here\r\n" + std::string(200, ' '));
  }
  for (const Descriptor& accepted : loud) EXPECT_TRUE(is_dropped(accepted, 2000));
  EXPECT_TRUE(is_dropped(slow.front(), 4000)) << "one who says too little is dropped after two seconds";
  for (const Descriptor& socket : unheard) {
    char byte;
    EXPECT_LE(::recv(socket.get(), &byte, 1, MSG_DONTWAIT), 0) << "one whom the kernel keeps learns nothing";
  }
  const auto start = Clock::now();
  EXPECT_TRUE(cluster[1].connect(addresses, Deadline::after_ms(10000)).is_ok());
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(2));
  parent.join();
  EXPECT_TRUE(root.is_ok()) << root.message();
  (void)cluster[0].report(Status(Code::Aborted, "x"));
  EXPECT_TRUE(cluster.all_fail(2000));
}

TEST(ControlPort, TwoThousandStrangersDoNotDelayAJoin) {
  EXPECT_TRUE(test::is_sooner_than_a_stranger([] {
    test::Cluster cluster({1, 1});
    const uint16_t port = test::port_in(cluster.addresses()[0].control);
    const test::Strangers idle(port, 2000, ""), loud(port, 2000, std::string(400, '\xff'));
    EXPECT_TRUE(idle.are_in() && loud.are_in());
    const auto start = Clock::now();
    EXPECT_TRUE(cluster.connect().is_ok());
    return Clock::now() - start;
  }));
}

void say(const Descriptor& socket, const HandshakeMessage& message) {
  EXPECT_EQ(::send(socket.get(), &message, sizeof message, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof message));
}

HandshakeMessage heard(const Descriptor& socket) {
  HandshakeMessage message;
  pollfd event{.fd = socket.get(), .events = POLLIN, .revents = 0};
  ::poll(&event, 1, 5000);
  EXPECT_EQ(::recv(socket.get(), &message, sizeof message, MSG_DONTWAIT), static_cast<ssize_t>(sizeof message));
  return message;
}

// Both ends of a handshake, as far as they come.
std::pair<std::shared_ptr<ControlConnection>, std::shared_ptr<ControlConnection>> shake_hands(Descriptor first,
                                                                                              Descriptor second) {
  const Secret key = Secret::random();
  const ControlIdentity one{.key = key, .communicator = 42, .self = 0},
      other{.key = key, .communicator = 42, .self = 1};
  HelloNumbers answered;
  ControlHandshake accepts = ControlHandshake::acceptor(one, ControlSocket(std::move(first)), &answered);
  ControlHandshake connects = ControlHandshake::connector(other, ControlSocket(std::move(second)), 0, 42);
  for (int round = 0; round < 10 && !connects.is_complete(); ++round) {
    EXPECT_EQ(connects.advance(), "");
    EXPECT_EQ(accepts.advance(), "");
    if (accepts.is_at_welcome()) {
      EXPECT_TRUE(accepts.welcome());
    }
  }
  EXPECT_TRUE(connects.is_complete() && accepts.is_complete());
  return {accepts.connection(), connects.connection()};
}

TEST(ControlHandshake, GivesEachDirectionAKeyOfItsOwn) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  const auto [left, right] = shake_hands(Descriptor(fds[0]), Descriptor(fds[1]));
  ControlLink a(left, kStream, nullptr), b(right, kStream, nullptr);
  a.send({MessageType::Heartbeat});
  a.flush();
  const std::vector<std::byte> own = take_raw(right->fd());
  ASSERT_EQ(::send(right->fd(), own.data(), own.size(), MSG_NOSIGNAL), static_cast<ssize_t>(own.size()));
  EXPECT_TRUE(received(a).empty()) << "took what it had sent itself";
  ASSERT_TRUE(a.ended());
  EXPECT_THAT(*a.ended(), HasSubstr("authentication code"));
}

TEST(ControlPort, RefusesRecordingsReflectionsAndOtherProtocols) {
  test::Cluster cluster({1, 1});
  const auto addresses = cluster.addresses();
  const MonitorConfig config = cluster.config_of(1);
  Status root;
  std::jthread parent([&] { root = cluster[0].connect(addresses, Deadline::after_ms(20000)); });

  const Secret key = config.key.derive("ccom liveness");  // part of the protocol
  const HandshakeIdentity self{HandshakeProtocol::Control, key, config.communicator, 1};
  const HandshakeIdentity tcp{HandshakeProtocol::Tcp, key, config.communicator, 1};
  const Descriptor other_protocol = visit(addresses[0].control);
  say(other_protocol, Handshake::connector(tcp, 0).next());
  EXPECT_TRUE(is_dropped(other_protocol, 2000));

  // Proved, but never said to the end: its Confirm is then what a recording would hold.
  Handshake connector = Handshake::connector(self, 0);
  const Descriptor first = visit(addresses[0].control);
  const HandshakeMessage hello = connector.next(config.communicator);
  say(first, hello);
  const HandshakeMessage answer = heard(first);
  ASSERT_TRUE(connector.receive(answer));
  const Descriptor second = visit(addresses[0].control);
  say(second, hello);
  EXPECT_TRUE(is_dropped(second, 1000)) << "its Hello has been answered";
  const Descriptor fresh = visit(addresses[0].control);
  say(fresh, Handshake::connector(self, 0).next(config.communicator));
  EXPECT_EQ(heard(fresh).step, HandshakeStep::Answer);
  say(fresh, connector.next(config.communicator));
  EXPECT_TRUE(is_dropped(fresh, 1000)) << "the Confirm of another conversation";
  const Descriptor third = visit(addresses[0].control);
  say(third, answer);
  EXPECT_TRUE(is_dropped(third, 1000)) << "its own Answer";

  EXPECT_TRUE(cluster[1].connect(addresses, Deadline::after_ms(10000)).is_ok());
  parent.join();
  EXPECT_TRUE(root.is_ok()) << root.message();
}

// Of a child that holds the key.
std::string client_hello(const Secret& liveness_key) {
  const auto context = TlsContext::create(liveness_key.derive("ccom liveness tls"));  // part of the protocol
  int ends[2];
  if (!context || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) return {};
  const Descriptor ours = Descriptor::from([&] { return ends[0]; });
  const Descriptor theirs = Descriptor::from([&] { return ends[1]; });
  const auto tls = Tls::make(**context, ours.get(), Tls::Side::Connects);
  EXPECT_EQ(tls->handshake(), Tls::Step::NeedsRead);
  char bytes[2048];
  const ssize_t size = ::recv(theirs.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  return {bytes, size > 0 ? static_cast<size_t>(size) : 0};
}

// It would take the memory of TLS, and a place, for two seconds.
TEST(ControlPort, AnswersAClientHelloOnce) {
  test::Cluster cluster({1, 1}, 3000, true);
  const auto addresses = cluster.addresses();
  Status root;
  std::jthread parent([&] { root = cluster[0].connect(addresses, Deadline::after_ms(20000)); });
  const std::string hello = client_hello(cluster.config_of(1).key.derive("ccom liveness"));
  ASSERT_FALSE(hello.empty());
  const std::string at = addresses[0].control.substr(0, addresses[0].control.find(' '));
  const Descriptor first = visit(at);
  say(first, hello);
  pollfd answered{.fd = first.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&answered, 1, 5000), 1);
  char byte;
  EXPECT_EQ(::recv(first.get(), &byte, 1, MSG_DONTWAIT), 1);
  const Descriptor second = visit(at);
  say(second, hello);
  pollfd ended{.fd = second.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ended, 1, 1000), 1) << "dropped at once";
  EXPECT_LE(::recv(second.get(), &byte, 1, MSG_DONTWAIT), 0) << "without an answer";
  EXPECT_TRUE(cluster[1].connect(addresses, Deadline::after_ms(10000)).is_ok());
  parent.join();
  EXPECT_TRUE(root.is_ok()) << root.message();
}

// A parent that lost the processor after it had received the Confirm: it admits this connection, and would admit no
// other.
TEST(ControlPort, AChildThatHasConfirmedWaitsForItsWelcome) {
  test::Cluster cluster({1, 1});
  const MonitorConfig config = cluster.config_of(1);
  const uint16_t port = free_ports(1).low;
  const auto listener = listen_at_port("127.0.0.1", port, 8);
  ASSERT_TRUE(listener.has_value());
  auto addresses = cluster.addresses();
  addresses[0].control = "127.0.0.1:" + std::to_string(port);
  Status child;
  std::jthread joining([&] { child = cluster[1].connect(addresses, Deadline::after_ms(20000)); });

  pollfd arrived{.fd = listener->get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&arrived, 1, 5000), 1);
  const Descriptor socket = Descriptor::from([&] { return ::accept(listener->get(), nullptr, nullptr); });
  const Secret key = config.key.derive("ccom liveness");
  Handshake parent = Handshake::acceptor({HandshakeProtocol::Control, key, config.communicator, 0});
  ASSERT_TRUE(parent.receive(heard(socket)));
  say(socket, parent.next(config.communicator));
  ASSERT_TRUE(parent.receive(heard(socket)));
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // a connector has two seconds for what comes before
  say(socket, parent.next(config.communicator));
  joining.join();
  EXPECT_TRUE(child.is_ok()) << child.message();
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

TEST(ControlPort, AFloodOfIdleConnectionsDoesNotKeepAChildOut) {
  test::Cluster cluster({1, 1});
  const auto addresses = cluster.addresses();
  std::vector<Descriptor> idle;
  std::thread parent([&] { EXPECT_TRUE(cluster[0].connect(addresses, Deadline::after_ms(20000)).is_ok()); });
  for (int i = 0; i < 300; ++i) idle.push_back(visit(addresses[0].control));
  EXPECT_TRUE(cluster[1].connect(addresses, Deadline::after_ms(10000)).is_ok());
  parent.join();
}

TEST(ControlPort, NothingListensAfterConnect) {
  test::Cluster cluster({1, 1});
  const auto addresses = cluster.addresses();
  ASSERT_TRUE(cluster.connect().is_ok());
  const Descriptor socket = visit(addresses[0].control);
  EXPECT_EQ(connect_outcome(socket), ECONNREFUSED);
}

}  // namespace
}  // namespace ccom
