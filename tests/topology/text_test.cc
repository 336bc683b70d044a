// SPDX-License-Identifier: Apache-2.0
//
// The text form, against files in tests/golden.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/golden.h"
#include "tests/harness/results.h"
#include "tools/topo/text.h"
#include "topology/topology.h"

namespace ccom {
namespace {

using testing::HasSubstr;
using testing::Not;

class GoldenFabric : public testing::TestWithParam<const char*> {};

TEST_P(GoldenFabric, PrintsAsRecorded) {
  std::string name = GetParam();
  const Fabric fabric = value_of(make_fabric(name));
  std::ranges::replace(name, ':', '_');
  expect_golden("topology_" + name + ".txt", to_text(fabric));
}

INSTANTIATE_TEST_SUITE_P(Text, GoldenFabric,
                         testing::Values("trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge", "torus:3x5", "ring:5",
                                         "p5.48xlarge", "torus:2x3x4"));

Host machine(const std::string& name) {
  return {.id = "id of " + name,
          .machine = "",
          .name = name,
          .instance_type = "trn1.2xlarge",
          .cpu_model = "Some CPU @ 2.9 GHz",
          .cpus = 8,
          .numa_nodes = 1,
          .memory_bytes = uint64_t{32} << 30,
          .caches = {{.level = 1, .size_bytes = 48 << 10, .shared_by_cpus = 2}, {.level = 2, .size_bytes = 5 << 18}},
          .nics = {{.name = "eth0", .kind = "ethernet", .bytes_per_second = 3.125e9, .numa_node = 0},
                   {.name = "eth1", .kind = "ethernet"}},
          .neuron = *make_fabric("trn1.2xlarge"),
          .imposed = std::nullopt};
}

TEST(Text, OfATopologyPrintsAsRecorded) {
  Host left = machine("left");
  left.imposed = *make_fabric("torus:2x2");
  Host right;
  right.id = "id of right";
  right.name = "right";
  const Topology topology = value_of(merge({{left}, {right}, {left}, {left}, {right}, {left}}));
  expect_golden("topology_two_hosts.txt", to_text(topology));
}

TEST(Text, OfAHostSaysWhatIsUnknown) {
  const std::string text = to_text(Host{});
  EXPECT_THAT(text, HasSubstr("host without a name\n"));
  EXPECT_THAT(text, HasSubstr("instance:  unknown\n"));
  EXPECT_THAT(text, HasSubstr("memory:    unknown\n"));
  EXPECT_THAT(text, HasSubstr("nics:      none known\n"));
  EXPECT_THAT(text, Not(HasSubstr("neuron")));
}

TEST(Text, NamesTheSpeedOfEachLinkWhereTheyDiffer) {
  Fabric fabric = *make_fabric("chain:3");
  EXPECT_THAT(to_text(fabric), HasSubstr("       1  0 2\n"));
  fabric.links[1].speed.bytes_per_second = 1e9;
  EXPECT_THAT(to_text(fabric), HasSubstr("       1  0 (1.5 us, 1 GB/s) 2 (1.5 us, 50 GB/s)\n"));
}

}  // namespace
}  // namespace ccom
