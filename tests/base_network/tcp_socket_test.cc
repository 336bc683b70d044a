// SPDX-License-Identifier: Apache-2.0
//
// Where ccom's listeners bind: within a range of ports, each on its own, and never at all addresses.
#include "base/tcp_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <set>

#include "tests/base_network/free_ports.h"

namespace ccom {
namespace {

using ::testing::HasSubstr;

uint16_t port_of(const Descriptor& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

TEST(PortRange, IsTwoPortsAndNothingElse) {
  EXPECT_EQ(*parse_port_range("40000-40999"), (PortRange{40000, 40999}));
  EXPECT_EQ(*parse_port_range("7-7"), (PortRange{7, 7}));
  EXPECT_TRUE(parse_port_range("")->is_any());
  for (const char* text :
       {"40000", "40000-", "-40000", "0-7", "8-7", "7-65536", "a-b", "7-8x", " 7-8", "7--8", "7-8-9"}) {
    const auto range = parse_port_range(text);
    ASSERT_FALSE(range.has_value()) << text;
    EXPECT_EQ(range.error().code(), Code::ConfigError);
    EXPECT_THAT(range.error().message(), HasSubstr("CCOM_PORT_RANGE"));
  }
}

TEST(ListenAt, TakesTheNextFreePortOfTheRangeAndSaysWhenThereIsNone) {
  const PortRange range = free_ports(3);
  std::vector<Descriptor> taken;
  std::set<uint16_t> ports;
  for (int i = 0; i < 3; ++i) {
    auto socket = listen_at("127.0.0.1", range, 1);
    ASSERT_TRUE(socket.has_value()) << socket.error().message();
    ports.insert(port_of(*socket));
    taken.push_back(*std::move(socket));
  }
  EXPECT_EQ(ports, (std::set<uint16_t>{range.low, static_cast<uint16_t>(range.low + 1), range.high}));
  const auto none = listen_at("127.0.0.1", range, 1);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code(), Code::ConfigError);
  EXPECT_EQ(none.error().sys_errno(), EADDRINUSE);
  EXPECT_THAT(none.error().message(), HasSubstr("every port of CCOM_PORT_RANGE="));
}

// As after a job that has just ended: its accepted connections linger on the port.
TEST(ListenAt, IsNotHeldUpByOldConnections) {
  auto listener = listen_at("127.0.0.1", {}, 1);
  ASSERT_TRUE(listener.has_value());
  const uint16_t port = port_of(*listener);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const Descriptor dialler(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(dialler.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const Descriptor accepted(::accept(listener->get(), nullptr, nullptr));
  ASSERT_TRUE(accepted.is_open());
  *listener = Descriptor();
  EXPECT_TRUE(listen_at("127.0.0.1", {port, port}, 1).has_value());
}

TEST(ListenAt, NeedsOneAddressOfOneHost) {
  for (const char* address :
       {"0.0.0.0", "::", "::ffff:0.0.0.0", "224.0.0.1", "ff02::1", "", "localhost", "127.0.0.1:80"}) {
    const auto socket = listen_at(address, {}, 1);
    ASSERT_FALSE(socket.has_value()) << address;
    EXPECT_EQ(socket.error().code(), Code::ConfigError) << socket.error().message();
  }
}

}  // namespace
}  // namespace ccom
