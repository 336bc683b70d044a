// SPDX-License-Identifier: Apache-2.0
//
// Where a rank runs: found from recorded machines with and without memory domains, carried by merge(), JSON, text and
// hash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "tests/topology/fake_tree.h"
#include "tools/topo/text.h"
#include "topology/topology.h"

namespace ccom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

void allow(FakeTree& tree, const std::string& cpus) {
  tree.write("proc/self/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t" + cpus + "\nMems_allowed:\t1\n");
}

std::string list(int first, int last) { return std::to_string(first) + "-" + std::to_string(last); }

// 2 sockets x 2 memory domains x 8 cores: node 0 is 0-7, ...; its caches are shared by 4 cores. Node 4 has memory
// alone.
void make_two_sockets(FakeTree& tree) {
  tree.write("sys/devices/system/cpu/online", "0-31\n");
  tree.write("sys/devices/system/node/node4/cpulist", "\n");
  for (int cpu = 0; cpu < 32; ++cpu) {
    const std::string cache = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index";
    tree.write(cache + "2/level", "2\n");
    tree.write(cache + "2/type", "Unified\n");
    tree.write(cache + "2/shared_cpu_list", std::to_string(cpu) + "\n");
    tree.write(cache + "3/level", "3\n");
    tree.write(cache + "3/type", "Unified\n");
    tree.write(cache + "3/shared_cpu_list", list(cpu / 4 * 4, cpu / 4 * 4 + 3) + "\n");
    if (cpu % 8 != 0) continue;
    tree.write("sys/devices/system/node/node" + std::to_string(cpu / 8) + "/cpulist", list(cpu, cpu + 7) + "\n");
  }
}

TEST(Locality, FollowsTheAffinityOnAMachineOfTwoSockets) {
  FakeTree tree;
  make_two_sockets(tree);
  const auto found = [&](const std::string& cpus) {
    allow(tree, cpus);
    const Locality locality = discover_locality(tree.root());
    return std::pair(locality.numa_node, locality.cache_group);
  };
  EXPECT_EQ(found("17"), std::pair(2, 16));
  EXPECT_EQ(found("20-23"), std::pair(2, 20));
  EXPECT_EQ(found("16-23"), std::pair(2, -1)) << "two caches";
  EXPECT_EQ(found("8,15"), std::pair(1, -1));
  EXPECT_EQ(found("7-8"), std::pair(-1, -1)) << "two domains";
  EXPECT_EQ(found("0-31"), std::pair(-1, -1));
  EXPECT_EQ(found("28-63"), std::pair(3, 28)) << "the CPUs that are not online do not count";
  EXPECT_EQ(found("40"), std::pair(-1, -1));
  EXPECT_EQ(found("rubbish"), std::pair(-1, -1));
  allow(tree, "9,3-5,4");
  EXPECT_THAT(discover_locality(tree.root()).cpus, ElementsAre(3, 4, 5, 9));
  tree.remove("proc/self/status");
  EXPECT_EQ(discover_locality(tree.root()).cpus.size(), 32U) << "all that are online";
}

TEST(Locality, IsUnknownOnAMachineWithoutMemoryDomains) {
  FakeTree tree;
  EXPECT_EQ(discover_locality(tree.root()), Locality());
  tree.write("sys/devices/system/cpu/online", "0-3\n");
  allow(tree, "2");
  const Locality locality = discover_locality(tree.root());
  EXPECT_THAT(locality.cpus, ElementsAre(2));
  EXPECT_EQ(locality.numa_node, -1);
  EXPECT_EQ(locality.cache_group, -1);
  EXPECT_EQ(discover_locality(tree.root() + "/nowhere"), Locality());
}

TEST(Locality, OfThisThreadIsWhatTheKernelSays) {
  std::thread([] {
    const std::vector<int> before = discover_locality("/").cpus;
    ASSERT_FALSE(before.empty());
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(before.back()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_THAT(discover_locality("/").cpus, ElementsAre(before.back()));
  }).join();
}

RankView at(int numa_node, int cache_group, std::vector<int> cpus, int quota = 0) {
  RankView view;
  view.host.id = view.host.name = "a";
  view.host.cpus = static_cast<int>(cpus.size());
  view.locality = {std::move(cpus), quota, numa_node, cache_group};
  return view;
}

TEST(Locality, IsKeptByMerge) {
  const Topology topology = *merge({at(0, 0, {0, 1}), at(1, 8, {8, 9}), at(-1, -1, {0, 1, 8, 9})});
  EXPECT_EQ(topology.ranks[1], (Place{.host = 0, .local = 1, .device = -1, .numa_node = 1, .cache_group = 8}));
  EXPECT_EQ(topology.ranks[2], (Place{.host = 0, .local = 2, .device = -1}));
}

// A bug found: ranks bound to one core each seemed to be on a machine of one core.
TEST(Locality, HostsHaveTheCpusOfAllTheirRanksTogether) {
  EXPECT_EQ(merge({at(0, 0, {0}), at(0, 0, {1}), at(0, 0, {1}), at(0, 0, {5})})->hosts[0].cpus, 3);
  EXPECT_EQ(merge({at(0, 0, {0}), at(0, 0, {})})->hosts[0].cpus, 1) << "unknown: the most that anybody sees";
  EXPECT_EQ(merge({at(0, 0, {0}, 2), at(0, 0, {1}, 2), at(0, 0, {2}, 2)})->hosts[0].cpus, 2) << "a quota of two";
  EXPECT_EQ(merge({at(0, 0, {0}, 2), at(0, 0, {1}), at(0, 0, {2})})->hosts[0].cpus, 3) << "not of everybody";
}

TEST(Locality, ComesBackFromJson) {
  const Locality locality{{0, 3, 4, 700}, 3, 2, 16};
  EXPECT_EQ(*locality_from_json(to_json(locality)), locality);
  EXPECT_EQ(*locality_from_json(to_json(Locality())), Locality());
  for (const char* text : {R"({"cpus":[3,3],"cpu_quota":0,"numa_node":0,"cache_group":0})",
                           R"({"cpus":[-1],"cpu_quota":0,"numa_node":0,"cache_group":0})",
                           R"({"cpus":[],"cpu_quota":-1,"numa_node":0,"cache_group":0})",
                           R"({"cpus":[],"cpu_quota":0,"numa_node":-2,"cache_group":0})",
                           R"({"cpus":[],"cpu_quota":0,"numa_node":0})", "7", ""}) {
    EXPECT_FALSE(locality_from_json(text)) << text;
  }
  const Topology bound = *merge({at(0, 0, {0}), at(1, -1, {8, 9}), at(-1, -1, {0, 8})});
  EXPECT_EQ(*topology_from_json(to_json(bound)), bound);
}

TEST(Locality, IsLeftOutOfTheJsonOfRanksThatHaveNone) {
  const Topology topology = *merge({at(-1, -1, {0, 8}), at(-1, -1, {0, 8})});
  EXPECT_THAT(to_json(topology), HasSubstr(R"("ranks":[{"host":0,"local":0,"device":-1},)"));
  EXPECT_EQ(*topology_from_json(to_json(topology)), topology);
  EXPECT_THAT(to_text(topology), Not(HasSubstr("no one NUMA node")));
}

TEST(Locality, IsPartOfHashAndText) {
  const Topology left = *merge({at(0, 0, {0}), at(0, 0, {1}), at(1, 8, {8}), at(-1, -1, {0, 8})});
  Topology right = left;
  right.ranks[1].numa_node = 1;
  EXPECT_NE(hash_of(left), hash_of(right));
  EXPECT_THAT(to_text(left), HasSubstr("  ranks:     0-3\n"
                                       "    no one NUMA node: 3\n"
                                       "    NUMA node 0, cache of cpu 0: 0-1\n"
                                       "    NUMA node 1, cache of cpu 8: 2\n"));
}

}  // namespace
}  // namespace ccom
