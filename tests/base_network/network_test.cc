// SPDX-License-Identifier: Apache-2.0
//
// Which interfaces a filter allows, on made-up hosts; and that the real host's list can be used as it is.
#include "base/network.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace ccom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<Interface> kHost = {
    {"lo", "127.0.0.1", false, true},          {"lo", "::1", true, true},
    {"docker0", "172.17.0.1", false, false},   {"eth1", "fd00:1::7", true, false},
    {"eth0", "10.0.0.7", false, false},        {"eth0", "fd00::7", true, false},
    {"veth12ab", "172.18.0.9", false, false},  {"br-4f00", "172.19.0.1", false, false},
    {"virbr0", "192.168.122.1", false, false}, {"eth1", "10.1.0.7", false, false},
    {"cni0", "10.244.0.1", false, false}};

std::vector<std::string> addresses(std::string_view filter, const std::vector<Interface>& all = kHost) {
  auto chosen = choose_interfaces(filter, all);
  EXPECT_TRUE(chosen.has_value()) << chosen.error().message();
  std::vector<std::string> result;
  if (chosen) {
    for (const Interface& interface : *chosen) result.push_back(interface.address);
  }
  return result;
}

Status refusal(std::string_view filter, const std::vector<Interface>& all = kHost) {
  auto chosen = choose_interfaces(filter, all);
  EXPECT_FALSE(chosen.has_value()) << "accepted: " << filter;
  return chosen.has_value() ? Status() : chosen.error();
}

TEST(ChooseInterfaces, TakesOrdinaryOnesByItselfIpv4First) {
  EXPECT_THAT(addresses(""), ElementsAre("10.0.0.7", "10.1.0.7", "fd00:1::7", "fd00::7"));
}

TEST(ChooseInterfaces, FallsBackToLoopbackWhenNothingElseIsThere) {
  const std::vector<Interface> laptop = {
      {"lo", "::1", true, true}, {"docker0", "172.17.0.1", false, false}, {"lo", "127.0.0.1", false, true}};
  EXPECT_THAT(addresses("", laptop), ElementsAre("127.0.0.1", "::1"));
}

TEST(ChooseInterfaces, KeepsTheOrderOfAListOfNames) {
  EXPECT_THAT(addresses("eth1,eth0"), ElementsAre("10.1.0.7", "fd00:1::7", "10.0.0.7", "fd00::7"));
  EXPECT_THAT(addresses(" lo , eth9"), ElementsAre("127.0.0.1", "::1"));
}

TEST(ChooseInterfaces, MatchesNamesExactly) {
  EXPECT_EQ(refusal("eth").code(), Code::ConfigError);
  EXPECT_EQ(refusal("ETH0").code(), Code::ConfigError);
  EXPECT_EQ(refusal("eth0:").code(), Code::ConfigError);
}

TEST(ChooseInterfaces, AllowsANamedVirtualInterface) { EXPECT_THAT(addresses("docker0"), ElementsAre("172.17.0.1")); }

TEST(ChooseInterfaces, ExcludesExactlyTheNamesAfterACaret) {
  EXPECT_THAT(addresses("^eth0,docker0,br-4f00,virbr0,cni0"),
              ElementsAre("10.1.0.7", "fd00:1::7", "172.18.0.9", "127.0.0.1", "::1"));
}

TEST(ChooseInterfaces, SaysThatNamesNeedNoEqualsSign) {
  for (const char* filter : {"=eth0", "=eth0,=eth1"}) {
    const auto chosen = choose_interfaces(filter, kHost);
    ASSERT_FALSE(chosen.has_value()) << filter;
    EXPECT_EQ(chosen.error().code(), Code::ConfigError);
    EXPECT_THAT(chosen.error().message(), HasSubstr("omit the ="));
  }
}

TEST(ChooseInterfaces, TakesThoseOfAListThatThereAre) {
  EXPECT_THAT(addresses("ens5,eth1"), ElementsAre("10.1.0.7", "fd00:1::7"));
}

TEST(ChooseInterfaces, ListsTheInterfacesWhenNothingMatches) {
  const Status named = refusal("ib0");
  EXPECT_EQ(named.code(), Code::ConfigError);
  EXPECT_THAT(named.message(), HasSubstr("ib0"));
  EXPECT_THAT(named.message(), HasSubstr("eth0 (10.0.0.7)"));
  EXPECT_THAT(named.cure(), HasSubstr("CCOM_SOCKET_IFNAME"));
  EXPECT_THAT(refusal("^eth0", {{"eth0", "10.0.0.7", false, false}}).message(), HasSubstr("excludes every"));
}

TEST(ChooseInterfaces, RefusesAHostWithoutInterfaces) {
  EXPECT_THAT(refusal("", {}).message(), HasSubstr("none is up"));
}

TEST(ChooseInterfaces, RefusesMalformedFilters) {
  for (const char* filter : {"^", ",", "eth0,", ",eth0", "eth0,,eth1", "eth0,^lo", "^^lo", "^lo,"}) {
    EXPECT_EQ(refusal(filter).code(), Code::ConfigError) << filter;
  }
}

// Whatever the text, the answer is a non-empty part of the host or a ConfigError.
TEST(ChooseInterfaces, NeverAnswersWithNothing) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string_view letters = "^,eth01lo ";
  for (int round = 0; round < 20000; ++round) {
    std::string filter(random() % 8, ' ');
    for (char& letter : filter) letter = letters[random() % letters.size()];
    const auto chosen = choose_interfaces(filter, kHost);
    if (chosen.has_value()) {
      ASSERT_FALSE(chosen.value().empty()) << filter;
    } else {
      ASSERT_EQ(chosen.error().code(), Code::ConfigError) << filter;
    }
  }
}

TEST(ListInterfaces, FindsLoopbackAndOnlyAddressesThatParse) {
  bool has_loopback = false;
  for (const Interface& interface : list_interfaces()) {
    in6_addr parsed{};
    EXPECT_EQ(::inet_pton(interface.is_ipv6 ? AF_INET6 : AF_INET, interface.address.c_str(), &parsed), 1)
        << interface.address;
    EXPECT_FALSE(interface.address.starts_with("fe80")) << interface.address;
    EXPECT_FALSE(interface.name.empty());
    has_loopback |= interface.is_loopback;
  }
  EXPECT_TRUE(has_loopback);
  EXPECT_TRUE(choose_interfaces("").has_value());
}

}  // namespace
}  // namespace ccom
