// SPDX-License-Identifier: Apache-2.0
//
// Who is let through to a protocol, and what becomes of all others.
#include "base/unproved.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <thread>

#include "base/handshake.h"
#include "base/tcp_socket.h"
#include "tests/base_network/strangers.h"

namespace ccom {
namespace {

struct Port {
  explicit Port(const Greeting& greeting = kHandshakeGreeting)
      : listener(*listen_at_port("127.0.0.1", 0, SOMAXCONN)), unproved(*UnprovedConnections::create(greeting)) {
    EXPECT_TRUE(unproved.add_listener(listener.get()).is_ok());
    socklen_t length = sizeof address;
    ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length);
  }
  uint16_t number() const { return ntohs(address.sin_port); }
  Descriptor visit() const {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  // The next one that has spoken, waiting for it.
  Descriptor next(int at_most_ms) {
    const Deadline deadline = Deadline::after_ms(at_most_ms);
    while (true) {
      Descriptor found = unproved.next();
      if (found.is_open() || deadline.passed()) return found;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  sockaddr_in address{};
  Descriptor listener;
  UnprovedConnections unproved;
};

void say(const Descriptor& socket, ConstBytes bytes) {
  EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

TEST(UnprovedConnections, ReturnWhoHasSaidAWholeGreetingInWhateverPieces) {
  Port port;
  const HandshakeMessage hello;
  const Descriptor peer = port.visit();
  for (size_t i = 0; i + 1 < sizeof hello; ++i) {
    say(peer, hello.bytes().subspan(i, 1));
    ASSERT_FALSE(port.unproved.next().is_open()) << i;
  }
  say(peer, hello.bytes().last(1));
  const Descriptor found = port.next(5000);
  ASSERT_TRUE(found.is_open());
  HandshakeMessage heard;
  EXPECT_EQ(::recv(found.get(), &heard, sizeof heard, 0), static_cast<ssize_t>(sizeof heard)) << "nothing was taken";
  EXPECT_EQ(port.unproved.waiting(), 0u);
}

TEST(UnprovedConnections, DropWhoSaysSomethingElseOrCloses) {
  Port port;
  const Descriptor wrong = port.visit(), left = port.visit();
  say(wrong, std::as_bytes(std::span("GET", 3)));
  EXPECT_FALSE(port.next(50).is_open());
  ::shutdown(left.get(), SHUT_WR);
  EXPECT_FALSE(port.next(50).is_open());
  EXPECT_EQ(port.unproved.refused(), 2u);
  EXPECT_EQ(port.unproved.waiting(), 0u);
}

TEST(UnprovedConnections, MeasureAClientHello) {
  const auto bytes = [](std::initializer_list<int> values) {
    std::vector<std::byte> result;
    for (const int value : values) result.push_back(static_cast<std::byte>(value));
    return result;
  };
  EXPECT_EQ(kClientHelloGreeting.measure(bytes({22})), 5u);
  EXPECT_EQ(kClientHelloGreeting.measure(bytes({22, 3, 1, 1, 2})), 5u + 258);
  EXPECT_EQ(kClientHelloGreeting.measure(bytes({22, 3, 1, 0xff, 2})), 0u) << "longer than any that makes sense";
  EXPECT_EQ(kClientHelloGreeting.measure(bytes({21, 3, 1, 0, 2})), 0u);
  EXPECT_EQ(kClientHelloGreeting.measure(bytes({'G', 'E', 'T', ' ', '/'})), 0u);
}

TEST(UnprovedConnections, LetThroughWhoBeginsAGreetingOfEitherKind) {
  Port port(kEitherGreeting);
  const test::Strangers loud(port.number(), 100, "GET /"), almost(port.number(), 100, "CSHA");
  ASSERT_TRUE(loud.are_in() && almost.are_in());
  EXPECT_FALSE(port.next(50).is_open());
  EXPECT_EQ(port.unproved.waiting() + port.unproved.refused(), 0u);
  const HandshakeMessage hello;
  const std::string client_hello("\x16\x03\x01\x00\x04\x01\x02\x03\x04", 9);
  for (const ConstBytes greeting : {hello.bytes(), std::as_bytes(std::span(client_hello))}) {
    const Descriptor half = port.visit(), peer = port.visit();
    say(half, greeting.first(greeting.size() - 1));
    say(peer, greeting);
    EXPECT_TRUE(port.next(5000).is_open());
    EXPECT_FALSE(port.next(50).is_open());
    say(half, greeting.last(1));
    EXPECT_TRUE(port.next(5000).is_open());
  }
}

// With what the kernel lets through.
TEST(UnprovedConnections, LetAPeerThroughBehindTwoThousandWhoSayTooLittle) {
  EXPECT_TRUE(test::is_sooner_than_a_stranger([] {
    Port port;
    const test::Strangers idle(port.number(), 2000, "C"), loud(port.number(), 1000, "GET");
    EXPECT_TRUE(idle.are_in() && loud.are_in());
    const Descriptor peer = port.visit();
    say(peer, HandshakeMessage().bytes());
    const auto start = Clock::now();
    EXPECT_TRUE(port.next(5000).is_open());
    EXPECT_LE(port.unproved.waiting(), 256u);
    return Clock::now() - start;
  }));
}

// The kernel keeps them, whether they come before a peer or after it; the peer needs no retransmission.
TEST(UnprovedConnections, AreNotWokenByWhoSaysNothingOrSomethingElse) {
  for (const Greeting* const greeting : {&kHandshakeGreeting, &kClientHelloGreeting}) {
    const bool is_handshake = greeting == &kHandshakeGreeting;
    Port port(*greeting);
    const test::Strangers idle(port.number(), 500, ""), loud(port.number(), 500, std::string(400, '\xA5')),
        almost(port.number(), 100, is_handshake ? "CSHA" : "\x16\x02\x01");
    ASSERT_TRUE(idle.are_in() && loud.are_in() && almost.are_in());
    pollfd events{port.unproved.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&events, 1, 20), 0);
    EXPECT_FALSE(port.unproved.next().is_open());
    EXPECT_EQ(port.unproved.waiting() + port.unproved.refused(), 0u);
    const Descriptor peer = port.visit();
    const HandshakeMessage hello;
    const std::string client_hello("\x16\x03\x01\x00\x04\x01\x02\x03\x04", 9);
    say(peer, is_handshake ? hello.bytes() : std::as_bytes(std::span(client_hello)));
    const auto start = Clock::now();
    const Descriptor found = port.next(5000);
    ASSERT_TRUE(found.is_open());
    EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(150)) << "TCP sends again after 200";
    // What it says later may begin with anything.
    char heard[400];
    EXPECT_GT(::recv(found.get(), heard, sizeof heard, 0), 0);
    say(peer, std::as_bytes(std::span("GET", 3)));
    events = {found.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&events, 1, 150), 1);
  }
}

// With every part of a greeting but the whole: one connection for each length.
TEST(UnprovedConnections, CostAtMostFourKiBEachBeforeTheirGreetingIsWhole) {
  const HandshakeMessage handshake;
  std::vector<std::byte> client_hello(5 + 4096);
  for (const auto& [i, value] : {std::pair<size_t, int>{0, 22}, {1, 3}, {2, 1}, {3, 16}})
    client_hello[i] = static_cast<std::byte>(value);
  for (const auto& [greeting, whole] : {std::pair(&kHandshakeGreeting, handshake.bytes()),
                                        std::pair(&kClientHelloGreeting, ConstBytes(client_hello))}) {
    Port port(*greeting);
    const size_t before = ::mallinfo2().uordblks;
    std::vector<Descriptor> peers;
    const size_t step = std::max<size_t>(1, whole.size() / 200);
    for (size_t length = 1; length < whole.size(); length += step) {
      peers.push_back(port.visit());
      say(peers.back(), whole.first(length));
    }
    EXPECT_FALSE(port.next(50).is_open());
    EXPECT_EQ(port.unproved.waiting(), peers.size());
    EXPECT_LE(::mallinfo2().uordblks, before + peers.size() * 4096);
  }
}

// Whose descriptors are used up drops strangers for a peer, and waits without a busy loop if there are none.
TEST(UnprovedConnections, WorkWithoutFreeDescriptors) {
  Port port;
  const test::Strangers idle(port.number(), 10, "C");
  EXPECT_FALSE(port.next(20).is_open());
  const Descriptor peer = port.visit();
  say(peer, HandshakeMessage().bytes());
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit before = limit;
  limit.rlim_cur = static_cast<rlim_t>(peer.get()) + 1;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_TRUE(port.next(1000).is_open());
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(UnprovedConnections, PauseWhileNothingCanBeDropped) {
  Port port;
  const Descriptor peer = port.visit();
  say(peer, HandshakeMessage().bytes());
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit before = limit;
  limit.rlim_cur = 3;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_FALSE(port.unproved.next().is_open());
  EXPECT_GT(port.unproved.wait_ms(), 10) << "not at once again";
  EXPECT_FALSE(port.unproved.next().is_open());
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(port.next(1000).is_open());
}

}  // namespace
}  // namespace ccom
