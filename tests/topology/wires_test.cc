// SPDX-License-Identifier: Apache-2.0
//
// What messages occupy on their way: through links, switches, memories and uplinks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/topology/way.h"
#include "topology/wires.h"

namespace ccom {
namespace {

using testing::ElementsAre;

TEST(Wires, GoThroughATorusDimensionByDimensionTheShorterWay) {
  const Topology torus = *make_topology("torus:4x5");
  EXPECT_THAT(way(torus, 0, 1), ElementsAre("host 0 link 0->1"));
  EXPECT_THAT(way(torus, 0, 4), ElementsAre("host 0 link 0->4"));  // round the row
  EXPECT_THAT(way(torus, 1, 18), ElementsAre("host 0 link 1->2", "host 0 link 2->3", "host 0 link 3->18"));
  EXPECT_THAT(way(torus, 0, 10), ElementsAre("host 0 link 0->5", "host 0 link 5->10"));  // both ways are two long:
  EXPECT_THAT(way(torus, 5, 15), ElementsAre("host 0 link 5->0", "host 0 link 0->15"));  // even up, odd down
}

TEST(Wires, AreNeverLongerThanTheShortestWay) {
  for (const char* name : {"torus:3x4", "torus:2x3x4", "ring:7", "chain:6", "full:5", "switch:5", "trn3-us-gen2/1"}) {
    const Topology topology = *make_topology(name);
    const Fabric& fabric = *topology.hosts[0].imposed;
    for (Rank a = 0; a < topology.nranks(); a += 5) {
      // Distances from a by breadth-first search over the links.
      std::vector<int> distance(static_cast<size_t>(fabric.devices + fabric.switches), -1);
      std::vector<int> reached{a};
      distance[static_cast<size_t>(a)] = 0;
      for (size_t i = 0; i < reached.size(); ++i) {
        for (const Link& link : fabric.links) {
          if (link.from != reached[i] || distance[static_cast<size_t>(link.to)] >= 0) continue;
          distance[static_cast<size_t>(link.to)] = distance[static_cast<size_t>(link.from)] + 1;
          reached.push_back(link.to);
        }
      }
      for (Rank b = 0; b < topology.nranks(); ++b) {
        if (a == b) continue;
        EXPECT_EQ(way(topology, a, b).size(), static_cast<size_t>(distance[static_cast<size_t>(b)])) << name << a << b;
      }
    }
  }
}

TEST(Wires, BetweenHostsAreTheNearestUplinks) {
  const Topology cluster = *make_topology("2*trn1.32xlarge");
  EXPECT_THAT(way(cluster, 0, 1), ElementsAre("host 0 port of local rank 0"));
  EXPECT_THAT(way(cluster, 3, 32 + 8), ElementsAre("host 0 uplink 0 out", "host 1 uplink 1 in"));
  const Topology plain = *make_topology("2*ring:4");
  EXPECT_THAT(way(plain, 1, 6), ElementsAre("host 0 uplink 0 out", "host 1 uplink 0 in"));
  const Wires wires(cluster);
  std::vector<uint32_t> path;
  wires.path(3, 40, path);
  EXPECT_EQ(wires[path[0]].speed.latency_ns + wires[path[1]].speed.latency_ns, 15000);
  EXPECT_EQ(wires[path[0]].speed.bytes_per_second, 25e9);  // two cards of 100 Gb/s
}

TEST(Wires, OfHostsWithoutAFabricAreAPortPerRankAndTheNetwork) {
  std::vector<RankView> views(4);
  for (size_t r = 0; r < 4; ++r) views[r].host.id = views[r].host.name = r < 2 ? "a" : "b";
  const Topology hosts = *merge(views);
  EXPECT_THAT(way(hosts, 0, 1), ElementsAre("host 0 port of local rank 0"));
  EXPECT_THAT(way(hosts, 1, 2), ElementsAre("host 0 uplink 0 out", "host 1 uplink 0 in"));
  EXPECT_EQ(Wires(hosts).count(), 2u * (2 + 2));
}

}  // namespace
}  // namespace ccom
