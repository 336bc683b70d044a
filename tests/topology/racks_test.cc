// SPDX-License-Identifier: Apache-2.0
//
// Networks of two levels: names of machines with racks, what messages between racks occupy, how racks get into the
// topology of a job, and that they survive JSON and splitting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/results.h"
#include "tests/topology/way.h"
#include "topology/wires.h"

namespace ccom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

double speed_of(const Topology& topology, const std::string& name) {
  const Wires wires(topology);
  for (uint32_t wire = 0; wire < wires.count(); ++wire) {
    if (wires.name(wire) == name) return wires[wire].speed.bytes_per_second;
  }
  ADD_FAILURE() << "no wire " << name;
  return 0;
}

TEST(Racks, OfAMachinesNameTakeHostsInOrder) {
  const Topology even = value_of(make_topology("6*host:2@8Gbit+racks:2/4"));
  EXPECT_THAT(even.rack_numbers(), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_EQ(even.hosts[3].rack, (Rack{"rack1", 4}));
  EXPECT_THAT(make_topology("4*host:1+3*host:2+racks:1,3")->rack_numbers(), ElementsAre(0, 1, 1, 1, 2, 3, 3));
  EXPECT_THAT(make_topology("3*ring:4+routed+racks:2/1.5")->rack_numbers(), ElementsAre(0, 0, 1));
  EXPECT_THAT(make_topology("3*host:4")->rack_numbers(), ElementsAre(-1, -1, -1));
}

TEST(Racks, NamesThatSayNothingAreErrorsWithTheForm) {
  for (const char* name :
       {"4*host:1+racks:", "4*host:1+racks:0", "4*host:1+racks:2/", "4*host:1+racks:2/0.5", "4*host:1+racks:2/x",
        "4*host:1+racks:2,", "4*host:1+racks:a", "4*host:1+racks:2@1Gbit", "4*host:1+racks:2@1Gbit,x"}) {
    EXPECT_THAT(message_of(make_topology(name)), HasSubstr("write racks:HOSTS")) << name;
  }
  EXPECT_FALSE(make_topology("racks:2"));
  EXPECT_FALSE(make_topology("2*host:1+racks:2+2*host:1"));
}

TEST(Racks, AddTheirUplinksToTheWayOfMessagesThatLeaveThem) {
  const Topology cluster = *make_topology("4*host:2+racks:2/4");
  EXPECT_THAT(way(cluster, 0, 1), ElementsAre("host 0 port of local rank 0"));
  EXPECT_THAT(way(cluster, 0, 2), ElementsAre("host 0 uplink 0 out", "host 1 uplink 0 in"));
  EXPECT_THAT(way(cluster, 3, 6), ElementsAre("host 1 uplink 0 out", "rack 0 out", "rack 1 in", "host 3 uplink 0 in"));
  const Wires wires(cluster);
  EXPECT_EQ(wires.latency_ns(0, 4) - wires.latency_ns(0, 2), 1000) << "two more switches";
  EXPECT_EQ(kind_of("rack 1 in"), "rack");
  EXPECT_EQ(kind_of("host 1 uplink 0 in"), "uplink");
}

TEST(Racks, CarryWhatTheirHostsCardsDoByTheTaper) {
  const Topology plain = *make_topology("5*host:1@8Gbit+racks:2/4");
  EXPECT_DOUBLE_EQ(speed_of(plain, "rack 0 out"), 2 * 1e9 / 4);
  EXPECT_DOUBLE_EQ(speed_of(plain, "rack 2 in"), 1e9 / 4) << "it has one host";
  const Topology fabric = *make_topology("4*trn1.32xlarge/1+racks:2/2");
  EXPECT_DOUBLE_EQ(speed_of(fabric, "rack 1 out"), 2 * fabric.host_bytes_per_second(0) / 2);
  EXPECT_GT(fabric.host_bytes_per_second(0), fabric.network.bytes_per_second) << "all its cards";
}

TEST(Racks, HostsInNoneAreJoinedToTheCore) {
  Topology cluster = *make_topology("3*host:1+racks:2/4");
  cluster.hosts[2].rack = {};
  EXPECT_THAT(way(cluster, 0, 2), ElementsAre("host 0 uplink 0 out", "rack 0 out", "host 2 uplink 0 in"));
  EXPECT_THAT(way(cluster, 2, 1), ElementsAre("host 2 uplink 0 out", "rack 0 in", "host 1 uplink 0 in"));
}

TEST(Racks, SurviveJson) {
  const Topology cluster = *make_topology("4*host:1+racks:2/2.5");
  const Topology again = value_of(topology_from_json(to_json(cluster)));
  EXPECT_EQ(again, cluster);
  EXPECT_NE(hash_of(cluster), hash_of(*make_topology("4*host:1+racks:2/2")));
  std::string text = to_json(cluster);
  text.replace(text.find("\"taper\":2.5"), 11, "\"taper\":0.5");
  EXPECT_THAT(topology_from_json(text).error().message(), HasSubstr("rack.taper"));
}

TEST(Racks, OfAPartAreThoseOfItsHosts) {
  const Topology cluster = *make_topology("6*host:2+racks:2/4");
  const std::vector<Rank> members{1, 4, 5, 10};
  EXPECT_THAT(part_of(cluster, members).rack_numbers(), ElementsAre(0, 1, 2));
}

// Each rack has half of the way to another one.
TEST(Racks, AreSitesIfTheirUplinksHaveASpeedOfTheirOwn) {
  const Topology sites = value_of(make_topology("4*host:2@10Gbit+racks:2@200Mbit,25ms"));
  EXPECT_EQ(sites.hosts[3].rack, (Rack{"rack1", 1, {25e6, 25e6}}));
  EXPECT_DOUBLE_EQ(speed_of(sites, "rack 1 in"), 25e6);
  const Wires wires(sites);
  EXPECT_NEAR(wires.latency_ns(0, 7) - wires.latency_ns(0, 2), 25e6, 1);
  EXPECT_DOUBLE_EQ(sites.latency_between_racks_ns(), 25e6);
  EXPECT_DOUBLE_EQ(sites.bytes_between_racks(), 625e3);
  EXPECT_EQ(*topology_from_json(to_json(sites)), sites);
  EXPECT_NE(hash_of(sites), hash_of(*make_topology("4*host:2@10Gbit+racks:2@200Mbit,26ms")));
  EXPECT_EQ(make_topology("4*host:2+racks:2/4")->bytes_between_racks(), 0) << "nobody has said how far";
  Topology uneven = sites;
  uneven.hosts[3].rack.uplinks = {75e6, 5e6};
  EXPECT_DOUBLE_EQ(uneven.rack_uplinks()[1].speed.latency_ns, 75e6) << "the worst that a rack's hosts say";
  EXPECT_DOUBLE_EQ(uneven.rack_uplinks()[1].speed.bytes_per_second, 5e6);
  EXPECT_DOUBLE_EQ(uneven.latency_between_racks_ns(), 50e6);
}

// ---- Of a job -------------------------------------------------------------------------------------------------------

TEST(Racks, AreReadFromTheEnvironmentsWord) {
  EXPECT_EQ(*rack_from("row3/4"), (Rack{"row3", 4}));
  EXPECT_EQ(*rack_from("row3"), (Rack{"row3", 1}));
  EXPECT_EQ(*rack_from("a/b/2.5"), (Rack{"a/b", 2.5}));
  EXPECT_EQ(*rack_from("a/b@1.5Gbit,300us"), (Rack{"a/b", 1, {300e3, 1.5e9 / 8}}));
  for (const char* wrong : {"", "/4", "row3/", "row3/0", "row3/nan", "row3/1e9", "row3/4x", "@1Gbit,1ms", "a@1Gbit",
                            "a@1Gbit,", "a@,1ms", "a@1Gbit,1", "a@0Gbit,1ms", "a@1Gbit,0ms", "a@1Gbit,-1ms",
                            "a@infGbit,1ms", "a@1Gbit,11000ms", "a@1Gbit,nanms"}) {
    EXPECT_FALSE(rack_from(wrong)) << wrong;
  }
}

TEST(Racks, AreMergedByNameAndMustBeTheSameOnAHost) {
  std::vector<RankView> views(3);
  for (int rank = 0; rank < 3; ++rank) {
    Host& host = views[static_cast<size_t>(rank)].host;
    host.id = host.name = "host" + std::to_string(rank / 2);
    host.rack = {rank < 2 ? "north" : "south", 3};
  }
  const Topology merged = value_of(merge(views));
  EXPECT_THAT(merged.rack_numbers(), ElementsAre(0, 1));
  views[1].host.rack.name = "south";
  const Status torn = error_of(merge(views));
  EXPECT_EQ(torn.code(), Code::ConfigError);
  EXPECT_THAT(torn.message(), HasSubstr("rank 0 says that it is in rack \"north\", rank 1 in \"south\""));
}

}  // namespace
}  // namespace ccom
