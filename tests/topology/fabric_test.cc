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
  const Result<Fabric> made = make_fabric(name);
  if (made) return "no error";
  EXPECT_EQ(made.error().code(), Code::ConfigError) << name;
  return made.error().message();
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

TEST(Fabric, OfASwitchGivesEachDeviceLinksThatAddUpToItsPort) {
  for (const auto& [name, one_way] :
       std::map<std::string, double>{{"p4d.24xlarge", 300e9}, {"p5.48xlarge", 450e9}, {"p5en.48xlarge", 450e9}}) {
    const Fabric made = fabric(name);
    EXPECT_EQ(made.shape, Fabric::Shape::Full) << name;
    EXPECT_EQ(made.links.size(), 8u * 7u) << name;
    double out_of_zero = 0;
    for (const Link& link : made.links) out_of_zero += link.from == 0 ? link.speed.bytes_per_second : 0;
    EXPECT_NEAR(out_of_zero, one_way, 1) << name;
  }
}

TEST(Fabric, PresetsHaveTheRightDevicesAndLogicalCores) {
  struct Row {
    const char* name;
    int devices;
    int cores;
    size_t links;
  };
  for (const Row& row : {Row{"trn1.2xlarge", 1, 2, 0}, Row{"trn1n.32xlarge", 16, 2, 64}, Row{"inf2.xlarge", 1, 2, 0},
                         Row{"inf2.8xlarge", 1, 2, 0}, Row{"inf2.24xlarge", 6, 2, 10}, Row{"inf2.48xlarge", 12, 2, 24},
                         Row{"trn2.3xlarge", 1, 4, 0}, Row{"trn2.48xlarge", 16, 4, 64},
                         Row{"trn2u.48xlarge", 16, 4, 64}, Row{"p4d.24xlarge", 8, 1, 56}}) {
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
  for (const char* other : {"generic", "torus4x4", "trn2-ultraserver", "trn3-us-gen1", "trn3-us-gen2"}) {
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
      EXPECT_TRUE(made.linked(link.to, link.from)) << name;
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
  EXPECT_THAT(complaint("ring:0"), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(complaint("ring:-3"), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(complaint("ring:99999999999999999999"), HasSubstr("not a number"));
  EXPECT_THAT(complaint("ring:4x4"), HasSubstr("write ring:N"));
  EXPECT_THAT(complaint("ring:4 "), HasSubstr("\"4 \" is not a number"));
  EXPECT_THAT(complaint("torus:4"), HasSubstr("write torus:RxC"));
  EXPECT_THAT(complaint("torus:4x"), HasSubstr("\"\" is not a number"));
  EXPECT_THAT(complaint("torus:4x4x4"), HasSubstr("write torus:RxC"));
  EXPECT_THAT(complaint("torus:100x100"), HasSubstr("10000 devices, at most 1024"));
  EXPECT_THAT(complaint("full:257"), HasSubstr("at most 256"));
  EXPECT_THAT(complaint("single:1"), HasSubstr("takes no number"));
}

TEST(Fabric, OfAnUltraServerIsRefusedBecauseItSpansHosts) {
  EXPECT_THAT(complaint("trn2-ultraserver"), HasSubstr("joins 4 hosts, but a fabric spans one host"));
  EXPECT_THAT(complaint("trn3-us-gen2"), HasSubstr("a fabric spans one host"));
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
