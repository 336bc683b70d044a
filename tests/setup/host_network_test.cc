// SPDX-License-Identifier: Apache-2.0
//
// Which addresses and how many TCP connections a rank uses, on made-up hosts.
#include "setup/host_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ccom {
namespace {

using ::testing::ElementsAre;

const std::vector<Interface> kHost = {{"lo", "127.0.0.1", false, true},
                                      {"eth0", "10.0.0.7", false, false},
                                      {"eth0", "fd00::7", true, false},
                                      {"eth1", "10.1.0.7", false, false}};

Topology hosts(const std::vector<std::string>& nic_kinds) {
  Topology topology;
  for (const std::string& kind : nic_kinds) {
    Host host;
    host.machine = std::to_string(topology.hosts.size());
    host.nics.push_back({.name = "nic", .kind = kind});
    topology.hosts.push_back(std::move(host));
  }
  return topology;
}

std::vector<std::string> addresses(const std::string& filter, const std::string& rails = "") {
  CommConfig config;
  config.ifname = filter;
  config.tcp_rails = rails;
  const auto network = choose_network(config, hosts({"ethernet", "ethernet"}), kHost);
  EXPECT_TRUE(network.has_value()) << network.error().message();
  return network ? network->rails : std::vector<std::string>();
}

TEST(HostNetwork, UsesOneInterfaceUnlessSeveralAreNamed) {
  EXPECT_THAT(addresses(""), ElementsAre("10.0.0.7"));
  EXPECT_THAT(addresses("^eth0"), ElementsAre("10.1.0.7"));
  EXPECT_THAT(addresses("^lo"), ElementsAre("10.0.0.7"));
  EXPECT_THAT(addresses("eth1"), ElementsAre("10.1.0.7"));
  EXPECT_THAT(addresses("eth1,eth0"), ElementsAre("10.1.0.7", "10.0.0.7"));
  EXPECT_THAT(addresses(" eth0 , eth0 "), ElementsAre("10.0.0.7"));
}

TEST(HostNetwork, KeepsRailsApartFromEverythingElse) {
  EXPECT_THAT(addresses("lo", "eth1,eth0"), ElementsAre("10.1.0.7", "10.0.0.7"));
  EXPECT_THAT(addresses("eth0,eth1", "eth1"), ElementsAre("10.1.0.7"));
  CommConfig config;
  config.ifname = "eth1,eth0";
  EXPECT_EQ(choose_network(config, hosts({"ethernet", "ethernet"}), kHost)->address, "10.1.0.7");
  config.tcp_rails = "eth0";
  EXPECT_EQ(choose_network(config, hosts({"ethernet", "ethernet"}), kHost)->address, "10.1.0.7");
  config.tcp_rails = "eth7";
  EXPECT_FALSE(choose_network(config, hosts({"ethernet", "ethernet"}), kHost).has_value());
}

TEST(HostNetwork, OpensSeveralConnectionsOnlyBetweenHostsOnEc2) {
  EXPECT_EQ(automatic_tcp_streams(hosts({"ena", "ena"})), 8);
  EXPECT_EQ(automatic_tcp_streams(hosts({"ethernet", "ena"})), 8) << "both sides must agree";
  EXPECT_EQ(automatic_tcp_streams(hosts({"ena"})), 1) << "one host";
  Topology containers = hosts({"ena", "ena"});
  containers.hosts[1].machine = containers.hosts[0].machine;
  EXPECT_EQ(automatic_tcp_streams(containers), 1) << "containers of one machine";
  EXPECT_EQ(automatic_tcp_streams(hosts({"ethernet", "ethernet", "efa"})), 1);
}

TEST(HostNetwork, OpensAsManyConnectionsAsFillALongLink) {
  Topology sites = hosts({"ethernet", "ethernet"});
  const auto streams = [&](double bytes_per_second, double latency_ns) {
    sites.hosts[0].rack = {"north", 1, {latency_ns, bytes_per_second}};
    sites.hosts[1].rack = {"south", 1, {latency_ns, bytes_per_second}};
    return automatic_tcp_streams(sites);
  };
  EXPECT_EQ(streams(25e6, 25e6), 1) << "1.25 MB until the acknowledgements are back";
  EXPECT_EQ(streams(125e6, 25e6), 3) << "6.25 MB";
  EXPECT_EQ(streams(1.25e9, 25e6), 16) << "62.5 MB";
  EXPECT_EQ(streams(1.25e9, 10e3), 1) << "near";
}

TEST(HostNetwork, PrefersWhatTheUserSays) {
  CommConfig config;
  config.tcp_streams = 3;
  EXPECT_EQ(choose_network(config, hosts({"ena", "ena"}), kHost)->tcp_streams, 3);
}

}  // namespace
}  // namespace ccom
