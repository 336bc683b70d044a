// SPDX-License-Identifier: Apache-2.0
//
// Fabrics by name: the graphs of presets and generic shapes against what is known of the machines, and what wrong names
// say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "tests/harness/results.h"
#include "tests/topology/fake_tree.h"
#include "topology/topology.h"

namespace ccom {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Fabric fabric(std::string_view name) {
  const Result<Fabric> made = make_fabric(name);
  EXPECT_TRUE(made.has_value()) << name << ": " << made.error().message();
  return made ? *made : Fabric{};
}

std::set<int> neighbours(const Fabric& fabric, int device) {
  std::set<int> found;
  for (const Link& link : fabric.links) {
    if (link.from == device) found.insert(link.to);
  }
  return found;
}

std::string complaint(std::string_view name) {
  const Status failure = error_of(make_fabric(name));
  EXPECT_EQ(failure.code(), Code::ConfigError) << name;
  return failure.message();
}

TEST(Fabric, OfTrn1IsTheTorusThatItsDriverReports) {
  const Fabric trn1 = fabric("trn1.32xlarge");
  EXPECT_EQ(trn1.shape, Fabric::Shape::Torus);
  EXPECT_THAT(trn1.dims, ElementsAre(4, 4));
  EXPECT_EQ(trn1.devices, 16);
  EXPECT_EQ(trn1.cores_per_device, 2);
  EXPECT_EQ(trn1.links.size(), 64u);
  const auto reported = neighbours_in_grid_order();
  for (int device = 0; device < 16; ++device) {
    std::set<int> expected;
    std::string text = reported[static_cast<size_t>(device)] + ",";
    for (size_t at = 0, end = 0; (end = text.find(',', at)) != std::string::npos; at = end + 1) {
      expected.insert(std::stoi(text.substr(at, end - at)));
    }
    EXPECT_EQ(neighbours(trn1, device), expected) << device;
  }
}

// Exactly the 64 directed links and the 16 devices themselves, whatever the order of the question.
TEST(Fabric, LinkedIsTrueForExactlyTheNeighboursOfATorus) {
  const Fabric torus = fabric("torus:4x4");
  int links = 0;
  for (int a = 0; a < 16; ++a) {
    for (int b = 0; b < 16; ++b) {
      const int rows = std::abs(a / 4 - b / 4) % 2 + 2 * (std::abs(a / 4 - b / 4) == 2);  // distance on a ring of 4
      const int columns = std::abs(a % 4 - b % 4) % 2 + 2 * (std::abs(a % 4 - b % 4) == 2);
      EXPECT_EQ(torus.linked(a, b), rows + columns <= 1) << a << " " << b;
      links += a != b && torus.linked(a, b);
    }
  }
  EXPECT_EQ(links, 64);
  EXPECT_FALSE(torus.linked(0, 16));
  EXPECT_FALSE(torus.linked(-1, 0));
}

TEST(Fabric, SpeedsArePerDirection) {
  constexpr double kGib = 1024.0 * 1024 * 1024;
  EXPECT_DOUBLE_EQ(fabric("trn1.32xlarge").links[0].speed.bytes_per_second, 48 * kGib);   // 96 both ways
  EXPECT_DOUBLE_EQ(fabric("trn1n.32xlarge").links[0].speed.bytes_per_second, 96 * kGib);  // 192 both ways
  EXPECT_DOUBLE_EQ(fabric("inf2.48xlarge").links[0].speed.bytes_per_second, 48 * kGib);
  EXPECT_DOUBLE_EQ(fabric("trn2.48xlarge").links[0].speed.bytes_per_second, 128e9);  // given one way
  EXPECT_DOUBLE_EQ(fabric("trn1.32xlarge").links[0].speed.latency_ns, 1500);
}

TEST(Fabric, OfASwitchHasAPortForEachDevice) {
  for (const auto& [name, one_way] :
       std::map<std::string, double>{{"p4d.24xlarge", 300e9}, {"p5.48xlarge", 450e9}, {"p5en.48xlarge", 450e9}}) {
    const Fabric made = fabric(name);
    EXPECT_EQ(made.shape, Fabric::Shape::Switch) << name;
    EXPECT_EQ(made.switches, 1) << name;
    EXPECT_EQ(made.links.size(), 16u) << name;
    for (const Link& link : made.links) EXPECT_EQ(link.speed.bytes_per_second, one_way) << name;
    EXPECT_TRUE(made.linked(0, 7)) << name;
    EXPECT_FALSE(made.joined(0, 7)) << name;
  }
}

// Bandwidth to the network is that of all cards, however devices share them.
TEST(Fabric, UplinksAddUpToTheCards) {
  for (const auto& [name, uplinks, gbits] : {std::tuple("trn1.32xlarge", 4u, 800.0),
                                             {"trn1n.32xlarge", 4u, 1600.0},
                                             {"trn2.48xlarge", 16u, 3200.0},
                                             {"p4d.24xlarge", 4u, 400.0},
                                             {"p5.48xlarge", 8u, 3200.0},
                                             {"trn2-ultraserver", 64u, 12800.0},
                                             {"inf2.48xlarge", 0u, 0.0},
                                             {"trn2.3xlarge", 1u, 200.0}}) {
    const Fabric made = fabric(name);
    EXPECT_EQ(made.uplinks.size(), uplinks) << name;
    double sum = 0;
    std::set<int> devices;
    for (const Uplink& uplink : made.uplinks) {
      sum += uplink.speed.bytes_per_second * 8 / 1e9;
      devices.insert(uplink.devices.begin(), uplink.devices.end());
    }
    EXPECT_DOUBLE_EQ(sum, gbits) << name;
    EXPECT_EQ(devices.size(), uplinks > 0 ? static_cast<size_t>(made.devices) : 0) << name;
  }
  EXPECT_THAT(fabric("trn1.32xlarge").uplinks[0].devices, ElementsAre(0, 1, 12, 13));  // on one PCI bus
}

TEST(Fabric, PresetsHaveTheRightDevicesAndLogicalCores) {
  struct Row {
    const char* name;
    int devices;
    int cores;
    size_t links;
  };
  for (const Row& row :
       {Row{"trn1.2xlarge", 1, 2, 0}, Row{"trn1n.32xlarge", 16, 2, 64}, Row{"inf2.xlarge", 1, 2, 0},
        Row{"inf2.8xlarge", 1, 2, 0}, Row{"inf2.24xlarge", 6, 2, 10}, Row{"inf2.48xlarge", 12, 2, 24},
        Row{"trn2.3xlarge", 1, 4, 0}, Row{"trn2.48xlarge", 16, 4, 64}, Row{"trn2u.48xlarge", 16, 4, 64},
        Row{"p4d.24xlarge", 8, 1, 16}, Row{"trn2-ultraserver", 64, 4, 384}, Row{"trn3-us-gen1", 64, 4, 128},
        Row{"trn3-us-gen2", 144, 4, 2 * (144 + 144 + 72)}}) {
    const Fabric made = fabric(row.name);
    EXPECT_EQ(made.name, row.name);
    EXPECT_EQ(made.devices, row.devices) << row.name;
    EXPECT_EQ(made.cores_per_device, row.cores) << row.name;
    EXPECT_EQ(made.links.size(), row.links) << row.name;
  }
  EXPECT_EQ(neighbours(fabric("inf2.24xlarge"), 0), std::set<int>{1});  // a chain: no way round
  EXPECT_EQ(neighbours(fabric("inf2.48xlarge"), 0), (std::set<int>{1, 11}));
}

TEST(Fabric, EveryListedPresetCanBeMade) {
  const auto names = preset_names();
  EXPECT_GE(names.size(), 13u);
  EXPECT_TRUE(std::ranges::is_sorted(names));
  for (const std::string& name : names) EXPECT_TRUE(make_fabric(name).has_value()) << name;
  EXPECT_THAT(names, Contains("p5.48xlarge"));
  for (const char* other : {"generic", "torus4x4"}) {
    EXPECT_THAT(names, Not(Contains(other)));
  }
}

TEST(Fabric, OfSmallDimensionsHasNoParallelLinks) {
  EXPECT_EQ(fabric("ring:1").links.size(), 0u);
  EXPECT_EQ(fabric("ring:2").links.size(), 2u);
  EXPECT_EQ(fabric("ring:3").links.size(), 6u);
  EXPECT_EQ(fabric("chain:1").links.size(), 0u);
  EXPECT_EQ(fabric("chain:4").links.size(), 6u);
  EXPECT_EQ(fabric("full:5").links.size(), 20u);
  EXPECT_EQ(fabric("torus:1x1").links.size(), 0u);
  EXPECT_EQ(fabric("torus:2x2").links.size(), 8u);
  EXPECT_EQ(fabric("torus:2x3").links.size(), 18u);
  EXPECT_EQ(fabric("torus:1x5").links.size(), 10u);
  EXPECT_EQ(fabric("torus:2x2x2").links.size(), 24u);
  EXPECT_EQ(fabric("torus:4x4x4").links.size(), 384u);
  EXPECT_EQ(fabric("switch:3").links.size(), 6u);
  EXPECT_EQ(fabric("single").devices, 1);
}

TEST(Fabric, LinksAreSortedAndGoBothWays) {
  std::vector<std::string> names = preset_names();
  names.insert(names.end(), {"ring:7", "chain:9", "torus:3x5", "torus:8x8", "full:6"});
  for (const std::string& name : names) {
    const Fabric made = fabric(name);
    const auto ends = [](const Link& link) { return std::pair(link.from, link.to); };
    EXPECT_TRUE(std::ranges::is_sorted(made.links, std::less<>{}, ends)) << name;
    for (const Link& link : made.links) {
      EXPECT_NE(link.from, link.to) << name;
      EXPECT_TRUE(made.joined(link.to, link.from)) << name;
    }
  }
}

TEST(Fabric, NameThatIsWrongSaysWhatIsWrong) {
  EXPECT_THAT(complaint("trn1"), HasSubstr("no such preset; there are inf2.24xlarge"));
  EXPECT_THAT(complaint(""), HasSubstr("no such preset"));
  EXPECT_THAT(complaint("generic"), HasSubstr("no such preset"));
  EXPECT_THAT(complaint("other"), HasSubstr("no such shape; there are single, ring:N"));
  EXPECT_THAT(complaint("rnig:4"), HasSubstr("no such shape"));
  EXPECT_THAT(complaint("ring"), HasSubstr("write ring:N"));
  EXPECT_THAT(complaint("ring:"), HasSubstr("\"\" is not a number"));
  EXPECT_THAT(complaint("ring:0"), HasSubstr("from 1 to 16384"));
  EXPECT_THAT(complaint("ring:-3"), HasSubstr("from 1 to 16384"));
  EXPECT_THAT(complaint("ring:99999999999999999999"), HasSubstr("not a number"));
  EXPECT_THAT(complaint("ring:4x4"), HasSubstr("write ring:N"));
  EXPECT_THAT(complaint("ring:4 "), HasSubstr("\"4 \" is not a number"));
  EXPECT_THAT(complaint("torus:4"), HasSubstr("write torus:RxC"));
  EXPECT_THAT(complaint("torus:4x"), HasSubstr("\"\" is not a number"));
  EXPECT_THAT(complaint("torus:4x4x4x4"), HasSubstr("write torus:RxC"));
  EXPECT_THAT(complaint("torus:200x200"), HasSubstr("40000 devices, at most 16384"));
  EXPECT_THAT(complaint("full:257"), HasSubstr("at most 256"));
  EXPECT_THAT(complaint("single:1"), HasSubstr("takes no number"));
}

// Sixteen devices of each instance, and a ring through those of equal number that is half as fast.
TEST(Fabric, OfAnUltraServerIsATorusOfThreeDimensions) {
  const Fabric whole = fabric("trn2-ultraserver");
  EXPECT_EQ(whole.shape, Fabric::Shape::Torus);
  EXPECT_THAT(whole.dims, ElementsAre(4, 4, 4));
  EXPECT_EQ(neighbours(whole, 16 * 1 + 5), (std::set<int>{5, 37, 20, 22, 17, 25}));
  for (const Link& link : whole.links) {
    EXPECT_EQ(link.speed.bytes_per_second, link.from / 16 == link.to / 16 ? 128e9 : 64e9);
  }
  EXPECT_THAT(fabric("trn2-ultraserver:x2h").dims, ElementsAre(2, 4, 4));
  EXPECT_THAT(fabric("trn2-ultraserver:x1").dims, ElementsAre(4, 4));
  EXPECT_THAT(complaint("trn2-ultraserver:x3"), HasSubstr("no such mode; there are x4"));
}

TEST(Fabric, OfTrainium3ReachesEverybodyThroughSwitches) {
  const Fabric racks = fabric("trn3-us-gen2");
  EXPECT_EQ(racks.switches, 36 + 2);
  EXPECT_TRUE(racks.linked(0, 143));
  EXPECT_TRUE(racks.joined(3, 75));  // the same position in the other rack
  EXPECT_FALSE(racks.joined(3, 74));
}

TEST(Fabric, IsRoutedIfAskedFor) {
  EXPECT_FALSE(fabric("torus:4x4").linked(0, 10));
  EXPECT_TRUE(fabric("torus:4x4+routed").linked(0, 10));
  EXPECT_FALSE(fabric("torus:4x4+routed").linked(0, 16));
}

TEST(MakeTopology, OccupiesEveryCoreOfEveryHost) {
  const Topology cluster = *make_topology("3*trn2.48xlarge");
  EXPECT_EQ(cluster.nranks(), 3 * 64);
  EXPECT_EQ(cluster.ranks[64 + 5].host, 1);
  EXPECT_EQ(cluster.ranks[64 + 5].device, 1);
  EXPECT_EQ(make_topology("640*trn2.48xlarge/1")->nranks(), 10240);
  EXPECT_EQ(make_topology("torus:64x64")->nranks(), 4096);
  for (const auto& [name, what] : std::map<std::string, std::string>{{"0*ring:4", "number of hosts"},
                                                                     {"x*ring:4", "number of hosts"},
                                                                     {"2*trn1", "no such preset"},
                                                                     {"trn1.32xlarge/3", "has 2 cores"},
                                                                     {"60000*torus:64x64", "more than 1048576 ranks"},
                                                                     {"host:", "write host:RANKS"},
                                                                     {"host:0", "write host:RANKS"},
                                                                     {"host:2/0", "write host:RANKS"},
                                                                     {"host:2@9", "network's speed"},
                                                                     {"host:2@-1Gbit", "network's speed"},
                                                                     {"host:2+", "no such preset"},
                                                                     {"2*host:600000", "more than 1048576 ranks"},
                                                                     {"none.json", "No such file"}}) {
    EXPECT_THAT(message_of(make_topology(name)), HasSubstr(what)) << name;
  }
}

TEST(MakeTopology, JoinsHostsWithoutAFabric) {
  const Topology topology = *make_topology("host:3+2*host:5/4@25Gbit+ring:2+routed");
  ASSERT_EQ(topology.hosts.size(), 4u);
  EXPECT_EQ(topology.nranks(), 3 + 2 * 5 + 2);
  EXPECT_EQ(topology.ranks_of(2), (std::vector<Rank>{8, 9, 10, 11, 12}));
  EXPECT_EQ(topology.hosts[0].cpus, 3);
  EXPECT_EQ(topology.hosts[2].cpus, 4);
  EXPECT_FALSE(topology.hosts[1].imposed);
  EXPECT_EQ(topology.hosts[3].imposed->name, "ring:2+routed");
  EXPECT_EQ(topology.ranks[14].device, 1);
  EXPECT_EQ(make_topology("2*host:2@2500Mbit")->network.bytes_per_second, 2.5e9 / 8);
  EXPECT_EQ(make_topology("host:2@1Gbit+host:2@10Gbit")->network.bytes_per_second, 1e9 / 8) << "the slowest decides";
  EXPECT_TRUE(names_cluster("host:4"));
  EXPECT_FALSE(names_cluster("torus:4x4+routed"));
}

TEST(Fabric, ComesFromAFileThatIsNamed) {
  FakeTree files;
  files.write("pair.json", R"({"name": "pair", "devices": 2, "links": [[0, 1, 1500, 5e9], [1, 0, 1500, 6e9]]})");
  const Fabric pair = fabric(files.root() + "/pair.json");
  EXPECT_EQ(pair.shape, Fabric::Shape::Other);
  EXPECT_EQ(pair.cores_per_device, 1);
  EXPECT_EQ(pair.links[1].speed.bytes_per_second, 6e9);
  files.write("bad.json", R"({"name": "pair", "devices": 0, "links": []})");
  EXPECT_THAT(complaint(files.root() + "/bad.json"), HasSubstr("bad.json: fabric.devices: expected an integer from 1"));
  EXPECT_THAT(complaint(files.root() + "/none.json"), HasSubstr("No such file"));
  EXPECT_THAT(complaint(files.root() + "/"), HasSubstr("not a regular file"));
  EXPECT_THAT(complaint("no_such_file.json"), HasSubstr("No such file"));
}

}  // namespace
}  // namespace ccom
