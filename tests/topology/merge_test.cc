// SPDX-License-Identifier: Apache-2.0
//
// merge(): who shares a host, which place every rank takes, what it costs, and which disagreements are errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/harness/results.h"
#include "topology/topology.h"

namespace ccom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Sketch {
  std::string id;
  int cpus = 64;
  std::string imposed = "";
  std::vector<Nic> nics = {};
};

RankView view(const Sketch& sketch) {
  Host host;
  host.id = sketch.id;
  host.name = "name-of-" + sketch.id;
  host.cpus = sketch.cpus;
  host.nics = sketch.nics;
  if (!sketch.imposed.empty()) host.imposed = *make_fabric(sketch.imposed);
  return {host};
}

std::vector<RankView> views(const std::vector<Sketch>& sketches) {
  std::vector<RankView> all;
  for (const Sketch& sketch : sketches) all.push_back(view(sketch));
  return all;
}

Topology merged(const std::vector<Sketch>& sketches) { return value_of(merge(views(sketches))); }

TEST(Merge, GroupsRanksByHostIdInTheOrderOfTheLowestRank) {
  const Topology topology = merged({{"b"}, {"a"}, {"b"}, {"a"}, {"c"}});
  ASSERT_EQ(topology.hosts.size(), 3u);
  EXPECT_EQ(topology.hosts[0].id, "b");
  EXPECT_EQ(topology.hosts[1].id, "a");
  EXPECT_EQ(topology.hosts[2].id, "c");
  EXPECT_THAT(topology.ranks_of(0), ElementsAre(0, 2));
  EXPECT_THAT(topology.ranks_of(1), ElementsAre(1, 3));
  EXPECT_THAT(topology.ranks_of(2), ElementsAre(4));
  EXPECT_EQ(topology.ranks[3], (Place{.host = 1, .local = 1, .device = -1}));
  EXPECT_TRUE(topology.linked(0, 2));
  EXPECT_TRUE(topology.linked(0, 1));
}

// CCOM_HOSTID divides one machine: two discoveries of it with different ids are two hosts.
TEST(Merge, OfOneMachineUnderTwoHostIdsGivesTwoHosts) {
  const Result<Host> left = discover("/", "left");
  const Result<Host> right = discover("/", "right");
  const Result<Host> plain = discover("/", "");
  ASSERT_TRUE(left && right && plain);
  EXPECT_EQ(merge({{*left}, {*right}, {*left}})->hosts.size(), 2u);
  EXPECT_EQ(merge({{*plain}, {*plain}})->hosts.size(), 1u);
}

TEST(Merge, KeepsTheLowestRanksViewButTheMostCpus) {
  const Topology topology = merged({{.id = "a", .cpus = 2, .nics = {{.name = "first", .kind = "ethernet"}}},
                                    {.id = "a", .cpus = 8},
                                    {.id = "a", .cpus = 4}});
  EXPECT_EQ(topology.hosts[0].cpus, 8);
  ASSERT_EQ(topology.hosts[0].nics.size(), 1u);
  EXPECT_EQ(topology.hosts[0].nics[0].name, "first");
}

TEST(Merge, PlacesRanksOnTheCoresOfAnImposedFabric) {
  const Topology topology = merged(std::vector<Sketch>(32, {.id = "a", .imposed = "trn1.32xlarge"}));
  for (int rank = 0; rank < 32; ++rank) {
    EXPECT_EQ(topology.ranks[static_cast<size_t>(rank)], (Place{.host = 0, .local = rank, .device = rank / 2}));
  }
}

// All pairs of 32 ranks, two on each device of a 4x4 torus: 64 directed links between devices carry 4 pairs of ranks
// each, and the two ranks of a device reach each other.
TEST(Merge, LinkedFollowsTheLinksOfTheImposedTorus) {
  const Topology topology = merged(std::vector<Sketch>(32, {.id = "a", .imposed = "trn1.32xlarge"}));
  int between_devices = 0;
  int inside_devices = 0;
  for (Rank a = 0; a < 32; ++a) {
    for (Rank b = 0; b < 32; ++b) {
      if (a == b) continue;
      EXPECT_EQ(topology.linked(a, b), topology.hosts[0].imposed->linked(a / 2, b / 2));
      if (!topology.linked(a, b)) continue;
      (a / 2 == b / 2 ? inside_devices : between_devices) += 1;
    }
  }
  EXPECT_EQ(between_devices, 64 * 4);
  EXPECT_EQ(inside_devices, 16 * 2);
  EXPECT_TRUE(topology.linked(7, 7));
}

TEST(Merge, LinksRanksOfDifferentHostsWhateverIsImposed) {
  const Topology topology = merged({{.id = "a", .imposed = "chain:3"},
                                    {.id = "a", .imposed = "chain:3"},
                                    {.id = "a", .imposed = "chain:3"},
                                    {.id = "b", .imposed = "ring:5"}});
  EXPECT_FALSE(topology.linked(0, 2));
  EXPECT_TRUE(topology.linked(0, 1));
  EXPECT_TRUE(topology.linked(2, 3));
  EXPECT_EQ(topology.ranks[3].device, 0);
}

TEST(Merge, RefusesMoreRanksThanTheFabricHasCoresAndNamesThem) {
  const Status failure = error_of(merge(views(std::vector<Sketch>(6, {.id = "a", .imposed = "ring:4"}))));
  EXPECT_EQ(failure.code(), Code::ConfigError);
  EXPECT_THAT(failure.message(), HasSubstr("6 ranks, but topology \"ring:4\" has 4 cores"));
  EXPECT_THAT(failure.peers(), ElementsAre(4, 5));
  EXPECT_EQ(failure.host(), "name-of-a");
  EXPECT_FALSE(failure.cure().empty());
}

TEST(Merge, RefusesDifferentFabricsOnOneHostAndNamesBothRanks) {
  for (const char* other : {"chain:4", ""}) {
    const Status failure = error_of(
        merge(views({{.id = "b"}, {.id = "a", .imposed = "ring:4"}, {.id = "b"}, {.id = "a", .imposed = other}})));
    EXPECT_EQ(failure.code(), Code::ConfigError) << other;
    EXPECT_THAT(failure.message(), HasSubstr("rank 1 imposes topology \"ring:4\", rank 3"));
    EXPECT_THAT(failure.peers(), ElementsAre(1, 3));
  }
}

TEST(Merge, OfNobodyIsAnError) { EXPECT_EQ(merge({}).error().code(), Code::InvalidArgument); }

TEST(Merge, MemoryLatencyGrowsOnceRanksOutnumberCpus) {
  EXPECT_DOUBLE_EQ(merged(std::vector<Sketch>(4, {.id = "a", .cpus = 4})).memory.latency_ns, 500);
  EXPECT_DOUBLE_EQ(merged(std::vector<Sketch>(4, {.id = "a", .cpus = 2})).memory.latency_ns, 3000);
  EXPECT_DOUBLE_EQ(merged(std::vector<Sketch>(8, {.id = "a", .cpus = 2})).memory.latency_ns, 6000);
  // The crowded host counts.
  EXPECT_DOUBLE_EQ(merged({{"a"}, {.id = "b", .cpus = 1}, {.id = "b", .cpus = 1}}).memory.latency_ns, 3000);
}

TEST(Merge, NetworkIsAsFastAsTheSlowestHost) {
  const Nic slow{.name = "eth0", .kind = "ethernet", .bytes_per_second = 3e9};
  const Nic fast{.name = "eth1", .kind = "ethernet", .bytes_per_second = 12e9};
  const Nic efa{.name = "rdmap16s27", .kind = "efa", .bytes_per_second = 12.5e9};
  const Nic mute{.name = "eth2", .kind = "ethernet"};
  const auto speed = [](std::vector<Nic> a, std::vector<Nic> b) {
    return merged({{.id = "a", .nics = std::move(a)}, {.id = "b", .nics = std::move(b)}}).network.bytes_per_second;
  };
  EXPECT_DOUBLE_EQ(speed({slow, fast}, {slow, fast}), 12e9);    // the fastest card of a host
  EXPECT_DOUBLE_EQ(speed({slow, fast}, {slow}), 3e9);           // of the slowest host
  EXPECT_DOUBLE_EQ(speed({fast, efa, efa}, {efa, efa}), 25e9);  // EFA cards add up
  EXPECT_DOUBLE_EQ(speed({mute}, {mute}), 1.25e9);              // nobody says
  EXPECT_DOUBLE_EQ(speed({fast}, {}), 1.25e9);
  EXPECT_DOUBLE_EQ(merged({{"a"}}).network.latency_ns, 25000);
}

TEST(Part, HasTheHostsOfItsRanksAndTheirShareOfTheCpus) {
  const Topology whole = merged({{.id = "a", .cpus = 8},
                                 {.id = "b", .cpus = 4},
                                 {.id = "a", .cpus = 8},
                                 {.id = "c"},
                                 {.id = "a", .cpus = 8},
                                 {.id = "b", .cpus = 4}});
  const std::vector<Rank> members{5, 4, 0};
  const Topology part = part_of(whole, members);
  ASSERT_EQ(part.nranks(), 3);
  ASSERT_EQ(part.hosts.size(), 2U);
  EXPECT_EQ(part.hosts[0].id, "b");
  EXPECT_EQ(part.hosts[0].cpus, 2) << "one of two ranks, of 4";
  EXPECT_EQ(part.hosts[1].cpus, 5) << "two of three ranks, of 8";
  EXPECT_EQ(part.ranks_of(1), (std::vector<Rank>{1, 2}));
  EXPECT_EQ(part.ranks[2].local, 1);
  EXPECT_EQ(part.memory, whole.memory);
  std::vector<Rank> all(6);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(part_of(whole, all), whole);
}

// Their CPUs were divided twice.
TEST(Part, OfHostsOfOneMachineSharesItsCpusOnce) {
  Topology whole =
      merged({{.id = "a", .cpus = 8}, {.id = "a", .cpus = 8}, {.id = "b", .cpus = 8}, {.id = "b", .cpus = 8}});
  for (Host& host : whole.hosts) host.machine = "one";
  EXPECT_EQ(part_of(whole, std::vector<Rank>{0, 1, 2, 3}), whole);
  EXPECT_EQ(part_of(whole, std::vector<Rank>{0, 2}).hosts[0].cpus, 4);
  EXPECT_EQ(part_of(whole, std::vector<Rank>{0, 1}).hosts[0].cpus, 4);
}

TEST(Part, KeepsTheDevicesOfItsRanks) {
  const std::vector<Sketch> ranks(4, {.id = "a", .cpus = 4, .imposed = "ring:4"});
  const Topology whole = merged(ranks);
  const std::vector<Rank> members{3, 1};
  const Topology part = part_of(whole, members);
  EXPECT_EQ(part.ranks[0].device, 3);
  EXPECT_EQ(part.ranks[1].device, 1);
  EXPECT_FALSE(part.linked(0, 1)) << "opposite places of a ring";
}

TEST(Hash, TellsTopologiesApartAndEqualOnesNot) {
  const auto make = [](int cpus) { return merged({{.id = "a", .cpus = cpus, .imposed = "ring:4"}, {"b"}}); };
  EXPECT_EQ(hash_of(make(3)), hash_of(make(3)));
  EXPECT_NE(hash_of(make(3)), hash_of(make(4)));
  Topology changed = make(3);
  changed.hosts[0].imposed->links[5].speed.latency_ns += 1;
  EXPECT_NE(hash_of(changed), hash_of(make(3)));
}

}  // namespace
}  // namespace ccom
