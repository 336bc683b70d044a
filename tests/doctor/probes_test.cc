// SPDX-License-Identifier: Apache-2.0
//
// The probes over loopback: what they report of a good listener, of none, of a stranger, and of one that stalls; and
// that the listener serves only those who hold the secret.
#include "tools/doctor/probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>

#include "tools/doctor/socket.h"

namespace ccom::doctor {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

DataAddress loopback() { return {.interface = "lo", .address = "127.0.0.1"}; }

// Host 0 asks, host 1 has the address.
Reach try_address(const DataAddress& address, const Secret& secret) {
  std::vector<HostEntry> hosts(2);
  hosts[1].report.addresses = {address};
  const std::vector<Reach> reaches = try_all(secret, 0, hosts);
  EXPECT_EQ(reaches.size(), 1U);
  return reaches.front();
}

TEST(Probes, ReachAListener) {
  const Secret secret = Secret::random();
  for (const char* address : {"127.0.0.1", "::1"}) {
    std::vector<DataAddress> addresses = {{.interface = "lo", .address = address}};
    std::vector<std::string> failures;
    const Answering answering(secret, addresses, failures);
    ASSERT_THAT(failures, IsEmpty());
    const Reach reach = try_address(addresses[0], secret);
    EXPECT_TRUE(reach.connects && reach.answers && reach.carries) << reach.failure;
    EXPECT_EQ(reach.failure, "");
    EXPECT_GT(reach.path_mtu, 1000);
  }
}

TEST(Probes, SayWhyAnAddressCannotBeListenedAt) {
  std::vector<DataAddress> addresses = {{.interface = "eth9", .address = "192.0.2.77"}};
  std::vector<std::string> failures;
  const Answering answering(Secret::random(), addresses, failures);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_THAT(failures[0], HasSubstr("listen at 192.0.2.77: Cannot assign"));
  EXPECT_THAT(try_address(addresses[0], Secret::random()).failure, HasSubstr("could not listen"));
}

TEST(Probes, TellNobodyFromAStranger) {
  DataAddress address = loopback();
  {
    const Opened listener = listen_at(address.address, address.port);
    ASSERT_EQ(listener.failure, 0);
  }
  const Reach nobody = try_address(address, Secret::random());
  EXPECT_FALSE(nobody.connects);
  EXPECT_THAT(nobody.failure, HasSubstr("refused"));

  std::vector<DataAddress> addresses = {loopback()};
  std::vector<std::string> failures;
  const Answering answering(Secret::random(), addresses, failures);
  const Reach stranger = try_address(addresses[0], Secret::random());
  EXPECT_TRUE(stranger.connects);
  EXPECT_FALSE(stranger.answers) << "a listener with another secret must not answer";
}

// A peer that takes the small message and answers, and then takes nothing: what a lost large frame looks like.
TEST(Probes, TellThatLargeMessagesStall) {
  const Secret secret = Secret::random();
  std::vector<DataAddress> addresses = {loopback()};
  std::vector<std::string> failures;
  const Answering answering(secret, addresses, failures);
  DataAddress between = loopback();
  const Opened listener = listen_at(between.address, between.port);
  std::jthread relay([&] {  // Hands on 32 bytes each way, then nothing until the prober gives up.
    const Opened front = accept_from(listener.socket.get(), Deadline::after(5s));
    const Opened back = connect_to(addresses[0].address, addresses[0].port, Deadline::after(5s));
    std::array<std::byte, 32> token{};
    ASSERT_EQ(receive_all(front.socket.get(), token, Deadline::after(5s)), 0);
    ASSERT_EQ(send_all(back.socket.get(), token, Deadline::after(5s)), 0);
    ASSERT_EQ(receive_all(back.socket.get(), token, Deadline::after(5s)), 0);
    ASSERT_EQ(send_all(front.socket.get(), token, Deadline::after(5s)), 0);
    std::vector<std::byte> swallowed(1 << 20);
    EXPECT_NE(receive_all(front.socket.get(), swallowed, Deadline::after(20s)), 0);
  });
  const Clock::time_point begin = Clock::now();
  const Reach reach = try_address(between, secret);
  EXPECT_TRUE(reach.answers);
  EXPECT_FALSE(reach.carries);
  EXPECT_THAT(reach.failure, HasSubstr("timed out"));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(kProbeSeconds));
}

TEST(Probes, GiveStrangersNothing) {
  std::vector<DataAddress> addresses = {loopback()};
  std::vector<std::string> failures;
  const Answering answering(Secret::random(), addresses, failures);
  const Opened stranger = connect_to(addresses[0].address, addresses[0].port, Deadline::after(2s));
  ASSERT_EQ(stranger.failure, 0);
  const std::vector<std::byte> junk(32, std::byte{7});
  ASSERT_EQ(send_all(stranger.socket.get(), junk, Deadline::after(2s)), 0);
  std::array<std::byte, 1> answer{};
  EXPECT_EQ(receive_all(stranger.socket.get(), answer, Deadline::after(3s)), ECONNRESET) << "it must hang up";
}

}  // namespace
}  // namespace ccom::doctor
