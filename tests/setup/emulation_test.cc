// SPDX-License-Identifier: Apache-2.0
//
// What the shm transport is told of a fabric: the wires of each way, with times that are stretched by the scale.
#include "setup/emulation.h"

#include <gtest/gtest.h>

#include "base/log.h"

namespace ccom {
namespace {

Topology imposed(const std::string& name, int ranks) {
  Host host;
  host.id = "a";
  host.imposed = *make_fabric(name);
  return *merge(std::vector<RankView>(static_cast<size_t>(ranks), RankView{host}));
}

TEST(EmulatedFabric, StretchesEveryTimeByTheScale) {
  const ShmFabric fabric = emulated_fabric(imposed("ring:4", 4), 0, 1e-3);
  EXPECT_DOUBLE_EQ(fabric.post_ns, 100e3);
  ASSERT_EQ(fabric.ways.size(), 4u);
  ASSERT_EQ(fabric.ways[1].size(), 1u);
  EXPECT_DOUBLE_EQ(fabric.ways[1][0].ns_per_byte, 1e3 / 50);
  EXPECT_DOUBLE_EQ(fabric.ways[1][0].latency_ns, 1500e3);
}

TEST(EmulatedFabric, ReducesAsFastAsTheFabricsRanks) {
  Topology ring = imposed("ring:4", 4);
  EXPECT_EQ(emulated_fabric(ring, 0, 1e-3).reduce_ns_per_byte, 0) << "as fast as messages arrive";
  ring.hosts[0].imposed->costs.reduce_bytes_per_second = 20e9;
  EXPECT_DOUBLE_EQ(emulated_fabric(ring, 0, 1e-3).reduce_ns_per_byte, 1e3 / 20);
}

TEST(EmulatedFabric, LeadsWhereLinksLead) {
  const ShmFabric fabric = emulated_fabric(imposed("ring:4", 4), 0, 1);
  EXPECT_TRUE(fabric.ways[0].empty()) << "itself";
  EXPECT_TRUE(fabric.ways[2].empty()) << "no link";
  EXPECT_NE(fabric.ways[1][0].line, fabric.ways[3][0].line);
  const ShmFabric routed = emulated_fabric(imposed("ring:4+routed", 4), 0, 1);
  EXPECT_EQ(routed.ways[2].size(), 2u);
}

TEST(EmulatedFabric, CoresOfADeviceShareItsLinksAndEachHasAPort) {
  const Topology trn1 = imposed("trn1.32xlarge", 32);
  const ShmFabric zero = emulated_fabric(trn1, 0, 1e-3), one = emulated_fabric(trn1, 1, 1e-3);
  EXPECT_EQ(zero.ways[2][0].line, one.ways[3][0].line) << "both from device 0 to device 1";
  EXPECT_NE(zero.ways[1][0].line, one.ways[0][0].line);
  EXPECT_LT(zero.ways[1][0].ns_per_byte, zero.ways[2][0].ns_per_byte) << "inside the device";
  EXPECT_EQ(zero.lines, one.lines);
}

Topology imitating(const std::string& name, int ranks) {
  Host host;
  host.id = "a";
  EXPECT_TRUE(impose(host, name).is_ok());
  return *merge(std::vector<RankView>(static_cast<size_t>(ranks), RankView{host}));
}

TEST(ImitatedHosts, AreThoseOfTheName) {
  const Topology machine = imitating("2*torus:2x2", 8);
  EXPECT_EQ(machine.hosts.size(), 1u) << "all that connects ranks sees the host that there is";
  EXPECT_TRUE(machine.linked(0, 7));
  const std::optional<Topology> hosts = *imitated_hosts(machine);
  ASSERT_TRUE(hosts);
  EXPECT_EQ(hosts->hosts.size(), 2u);
  EXPECT_EQ(hosts->hosts[1].imposed->name, "torus:2x2");
  EXPECT_FALSE(*imitated_hosts(imposed("torus:2x2", 4))) << "one host imitates itself";
  EXPECT_NE(imitated_hosts(imitating("2*torus:2x2", 6)).error().message().find("8 ranks"), std::string::npos);
  Host host;
  EXPECT_EQ(impose(host, "2*host:4").code(), Code::ConfigError) << "no fabric whose links messages could take";
}

TEST(ImitatedHosts, SendOverTheirUplinks) {
  const std::optional<Topology> hosts = *imitated_hosts(imitating("2*torus:2x2", 8));
  const ShmFabric zero = emulated_fabric(*hosts, 0, 1e-3), one = emulated_fabric(*hosts, 1, 1e-3);
  ASSERT_EQ(zero.ways.size(), 8u);
  EXPECT_EQ(zero.ways[1].size(), 1u) << "a link";
  ASSERT_EQ(zero.ways[4].size(), 2u) << "out of one host, into the other";
  EXPECT_EQ(zero.ways[4][0].line, one.ways[5][0].line) << "all ranks of a host share the way out";
  EXPECT_EQ(zero.ways[4][1].line, one.ways[5][1].line);
  EXPECT_NEAR(zero.ways[4][0].ns_per_byte, 1e12 / hosts->network.bytes_per_second, 1e-6);
  EXPECT_NEAR(zero.ways[4][0].latency_ns + zero.ways[4][1].latency_ns, 1e3 * hosts->network.latency_ns, 1e-3);
  const std::optional<Topology> racks = *imitated_hosts(imitating("4*torus:2x2+racks:2/4", 16));
  EXPECT_EQ(emulated_fabric(*racks, 0, 1e-3).ways[4].size(), 2u) << "in one rack";
  EXPECT_EQ(emulated_fabric(*racks, 0, 1e-3).ways[8].size(), 4u) << "and the uplinks of both racks";
}

TEST(EmulatedFabric, DebugLinesNameTheLinksThatCarriedSomething) {
  const Topology ring = imposed("ring:2", 2);
  ShmFabric fabric = emulated_fabric(ring, 0, 1);
  const size_t rings = shm_region_bytes(2, 1, 4096);
  fabric.offset_bytes = rings;
  const auto segment = *SharedSegment::create(rings + shm_wires_bytes(fabric.lines), 0);
  ShmConfig config{.rank = 0, .local_ranks = {0, 1}, .segment = segment.get(), .ring_bytes = 4096, .fabric = &fabric};
  const auto sender = *make_shm_transport(config);
  const Peer peer{1, "", 1};
  // Its channels exist though nobody answers.
  EXPECT_EQ(sender->connect(std::span(&peer, 1), Deadline::after(std::chrono::milliseconds(1))).code(), Code::Timeout);
  const std::vector<std::byte> payload(300);
  ASSERT_TRUE((*sender->channel(1, 0))->post_send({{}, payload, 1}).is_ok());
  std::string lines;
  set_log_function([](LogLevel, const char* text, void* user) { *static_cast<std::string*>(user) += text; }, &lines);
  log_traffic(ring, *segment, fabric);
  set_log_function(nullptr, nullptr);
  EXPECT_EQ(lines, "emulated host 0 link 0->1 carried 300 bytes");
}

TEST(EmulateScale, IsANumberUpToOne) {
  CommConfig config;
  for (const std::string good : {"1", "0.5", "1e-3", "1e-9"})
    EXPECT_TRUE(config.set_emulate_scale(good).is_ok()) << good;
  EXPECT_EQ(config.emulate_scale, 1e-9);
  for (const std::string bad : {"0", "1.01", "-0.5", "1e-10", "x", "1e-3 ", "nan", "inf"}) {
    EXPECT_EQ(config.set_emulate_scale(bad).code(), Code::ConfigError) << bad;
  }
  ASSERT_TRUE(config.set_emulate_scale("").is_ok());
  EXPECT_EQ(config.emulate_scale, 0) << "off";
}

}  // namespace
}  // namespace ccom
