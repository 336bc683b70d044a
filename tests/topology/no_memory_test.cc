// SPDX-License-Identifier: Apache-2.0
//
// Where memory runs out at any point of what the start of a communicator does with JSON, the caller gets bad_alloc,
// which becomes an error: nothing on the way ends the process. Every allocation fails, once and with all later ones.
#include <gtest/gtest.h>

#include <new>

#include "topology/learned_ways.h"
#include "topology/sysfs_root.h"
#include "topology/topology.h"

namespace {

thread_local long allocations_left = -1;  // -1: none fails
thread_local bool fails_ever = false;

bool fails() {
  if (allocations_left < 0) return false;
  if (allocations_left > 0) return --allocations_left == 0;
  return fails_ever;
}

}  // namespace

#include "tests/operator_new.h"

namespace ccom {
namespace {

// A host of everything that a list or an object holds.
Host whole_host() {
  Host host;
  host.id = host.name = host.machine = "a host whose name is longer than a string's own room";
  host.caches = {{.level = 1, .size_bytes = 32768, .shared_by_cpus = 1},
                 {.level = 2, .size_bytes = 1 << 20, .shared_by_cpus = 1}};
  host.nics = {{.name = "eth0", .kind = "ethernet", .bytes_per_second = 1e9, .numa_node = 0, .pci = {}}};
  EXPECT_TRUE(impose(host, "trn1.32xlarge").is_ok());
  return host;
}

void use(const Host& host) {
  const Result<Host> read = host_from_json(to_json(host));
  if (read.has_value()) {
    EXPECT_EQ(*read, host);
  }
  const Result<Topology> topology = merge({{host, Locality()}, {host, Locality()}});
  if (topology.has_value()) {
    EXPECT_NE(hash_of(*topology), 0U);
  }
  LearnedWays ways;
  ways.kinds.resize(3);
  ways.kinds[1].median_us = {{"one way", 1.5}, {"another", 2.5}};
  EXPECT_NE(hash_of(ways), 0U);
  const Result<Host> wrong = host_from_json(R"({"id":[[[1,{"a":2}]]],"id":3})");
  EXPECT_FALSE(wrong.has_value());
}

template <typename Use>
long fail_each_allocation(bool ever, Use use) {
  long points = 0;
  for (bool has_failed = true; has_failed; ++points) {
    has_failed = false;
    fails_ever = ever;
    allocations_left = points + 1;
    try {
      use();
    } catch (const std::bad_alloc&) {
      has_failed = true;
    }
    has_failed |= allocations_left == 0;
    allocations_left = -1;
  }
  return points;
}

TEST(NoMemory, WhileJsonIsReadAndWrittenIsNoEndOfTheProcess) {
  const Host host = whole_host();
  for (const bool ever : {false, true}) EXPECT_GT(fail_each_allocation(ever, [&host] { use(host); }), 1000);
}

TEST(NoMemory, WhileSysfsIsReadIsNoEndOfTheProcess) {
  const SysfsRoot root("");
  for (const bool ever : {false, true}) {
    EXPECT_GT(fail_each_allocation(ever,
                                   [&root] {
                                     EXPECT_FALSE(root.list("/proc/self").empty());
                                     EXPECT_TRUE(root.exists("/proc/self/exe"));
                                     EXPECT_TRUE(root.link_target("/proc/self/exe").has_value());
                                   }),
              10);
  }
}

}  // namespace
}  // namespace ccom
