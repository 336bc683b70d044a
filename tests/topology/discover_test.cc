// SPDX-License-Identifier: Apache-2.0
//
// Discovery of everything but Neuron devices: from recorded trees, from trees full of rubbish, and on the machine that
// runs the test.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "tests/harness/child.h"
#include "tests/harness/results.h"
#include "tests/topology/fake_tree.h"
#include "tools/topo/text.h"
#include "topology/topology.h"

namespace ccom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Discover, OfAnEmptyTreeGivesDefaults) {
  FakeTree tree;
  const Host host = host_of(tree);
  EXPECT_FALSE(host.id.empty());
  EXPECT_EQ(host.cpus, 1);
  EXPECT_EQ(host.numa_nodes, 1);
  EXPECT_EQ(host.memory_bytes, 0u);
  EXPECT_THAT(host.nics, IsEmpty());
  EXPECT_THAT(host.caches, IsEmpty());
  EXPECT_FALSE(host.neuron || host.imposed);
}

TEST(Discover, OfNoTreeIsAnError) {
  FakeTree tree;
  const Status failure = error_of(discover(tree.root() + "/nowhere", ""));
  EXPECT_EQ(failure.code(), Code::ConfigError);
  EXPECT_THAT(failure.message(), HasSubstr("nowhere"));
}

TEST(Discover, ReadsCpuMemoryAndCaches) {
  FakeTree tree;
  tree.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) 8375C @ 2.90GHz\n\nprocessor\t: 1\n");
  tree.write("proc/meminfo", "MemTotal:       527988224 kB\nMemFree:  1 kB\n");
  tree.write("proc/sys/kernel/hostname", "ip-10-0-0-7\n");
  tree.write("sys/devices/system/cpu/online", "0-31,64-95\n");
  for (const char* node : {"node0", "node1", "power"}) tree.make_folder(std::string("sys/devices/system/node/") + node);
  const auto cache = [&tree](int index, const char* level, const char* type, const char* size, const char* cpus) {
    const std::string folder = "sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    tree.write(folder + "/level", std::string(level) + "\n");
    tree.write(folder + "/type", std::string(type) + "\n");
    tree.write(folder + "/size", std::string(size) + "\n");
    tree.write(folder + "/shared_cpu_list", std::string(cpus) + "\n");
  };
  cache(0, "3", "Unified", "54M", "0-31,64-95");
  cache(1, "1", "Instruction", "32K", "0,64");
  cache(2, "1", "Data", "48K", "0,64");
  cache(3, "2", "Unified", "1280K", "0,64");
  const Host host = host_of(tree);
  EXPECT_EQ(host.cpu_model, "Intel(R) Xeon(R) 8375C @ 2.90GHz");
  EXPECT_EQ(host.memory_bytes, 527988224u * uint64_t{1024});
  EXPECT_EQ(host.name, "ip-10-0-0-7");
  EXPECT_EQ(host.cpus, 64);
  EXPECT_EQ(host.numa_nodes, 2);
  EXPECT_THAT(host.caches, ElementsAre(Cache{1, 48 << 10, 2}, Cache{2, 1280 << 10, 2}, Cache{3, 54 << 20, 64}));
}

TEST(Discover, ReadsTheInstanceTypeOnlyOnEc2) {
  FakeTree tree;
  tree.set_instance_type("trn1.32xlarge");
  EXPECT_EQ(host_of(tree).instance_type, "trn1.32xlarge");
  tree.write("sys/devices/virtual/dmi/id/sys_vendor", "Some Maker\n");
  EXPECT_EQ(host_of(tree).instance_type, "");
}

TEST(Discover, ReadsCardsThatHaveADeviceBehindThem) {
  FakeTree tree;
  tree.write("sys/class/net/lo/speed", "1000\n");
  tree.write("sys/class/net/docker0/speed", "10000\n");  // no device: a bridge
  tree.write("sys/class/net/eth0/speed", "25000\n");
  tree.write("sys/class/net/eth0/device/numa_node", "1\n");
  tree.write("sys/class/net/eth1/speed", "-1\n");
  tree.write("sys/class/net/eth1/device/numa_node", "-1\n");
  tree.make_folder("sys/class/net/eth2/speed");  // is there, cannot be read
  tree.make_folder("sys/class/net/eth2/device");
  tree.write("sys/class/net/ens5/device/vendor", "0x1d0f\n");
  tree.write("sys/class/net/ib0/type", "32\n");  // IP over InfiniBand
  tree.make_folder("sys/class/net/ib0/device");
  tree.make_link("sys/class/infiniband/rdmap16s27/device/driver", "../../../../bus/pci/drivers/efa");
  tree.write("sys/class/infiniband/rdmap16s27/device/numa_node", "0\n");
  tree.write("sys/class/infiniband/rdmap16s27/ports/1/rate", "100 Gb/sec (4X EDR)\n");
  tree.write("sys/class/infiniband/rdmap32s27/device/vendor", "0x1d0f\n");  // driver not visible
  tree.make_link("sys/class/infiniband/mlx5_0/device/driver", "../../../../bus/pci/drivers/mlx5_core");
  EXPECT_THAT(host_of(tree).nics, ElementsAre(Nic{"ens5", "ena", 0, -1}, Nic{"eth0", "ethernet", 25e9 / 8, 1},
                                              Nic{"eth1", "ethernet", 0, -1}, Nic{"eth2", "ethernet", 0, -1},
                                              Nic{"rdmap16s27", "efa", 100e9 / 8, 0}, Nic{"rdmap32s27", "efa", 0, -1}));
}

TEST(Discover, TakesTheTightestCgroupQuotaOfVersionTwo) {
  FakeTree tree;
  tree.write("sys/devices/system/cpu/online", "0-15\n");
  tree.write("proc/self/cgroup", "0::/pods/one\n");
  tree.write("sys/fs/cgroup/pods/one/cpu.max", "max 100000\n");
  EXPECT_EQ(host_of(tree).cpus, 16);
  tree.write("sys/fs/cgroup/pods/one/cpu.max", "250000 100000\n");
  EXPECT_EQ(host_of(tree).cpus, 3);  // 2.5, rounded up
  tree.write("sys/fs/cgroup/pods/cpu.max", "200000 100000\n");
  EXPECT_EQ(host_of(tree).cpus, 2);  // an ancestor binds too
  tree.write("sys/fs/cgroup/pods/cpu.max", "10000 100000\n");
  EXPECT_EQ(host_of(tree).cpus, 1);
  tree.write("sys/fs/cgroup/pods/cpu.max", "9900000 100000\n");
  tree.write("sys/fs/cgroup/pods/one/cpu.max", "4200000 100000\n");
  EXPECT_EQ(host_of(tree).cpus, 16);  // looser than the machine
}

// Inside a container the kernel may report the path on the host, while the mount shows the container's own root.
TEST(Discover, TakesTheQuotaOfAContainersOwnRoot) {
  FakeTree tree;
  tree.write("sys/devices/system/cpu/online", "0-15\n");
  tree.write("proc/self/cgroup", "0::/kubepods/pod1/abc\n");
  tree.write("sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(host_of(tree).cpus, 4);
  tree.write("proc/self/cgroup", "0::/../../elsewhere\n");
  EXPECT_EQ(host_of(tree).cpus, 4);
}

TEST(Discover, TakesTheCgroupQuotaOfVersionOne) {
  FakeTree tree;
  tree.write("sys/devices/system/cpu/online", "0-15\n");
  tree.write("proc/self/cgroup", "9:name=systemd:/x\n4:cpu,cpuacct:/docker/abc\n2:cpuset:/\n0::/\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "150000\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "50000\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(host_of(tree).cpus, 3);
  tree.write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(host_of(tree).cpus, 16);
}

TEST(Discover, TakesTheHostIdThatItIsGiven) {
  FakeTree tree;
  tree.write("proc/sys/kernel/random/boot_id", "fbb6f3d5-8585-4e0e-b88d-f460e03cc6b4\n");
  EXPECT_EQ(host_of(tree).id, "fbb6f3d5-8585-4e0e-b88d-f460e03cc6b4");
  EXPECT_EQ(host_of(tree, {}, "left half").id, "left half");
  EXPECT_EQ(discover(tree.root(), "two\nlines").error().code(), Code::ConfigError);
  EXPECT_EQ(discover(tree.root(), std::string(1000, 'x')).error().code(), Code::ConfigError);
}

TEST(Discover, OfOneTreeTwiceGivesEqualHostsAndOfOtherMachinesOtherIds) {
  FakeTree one;
  FakeTree two;
  one.write("proc/sys/kernel/random/boot_id", "one\n");
  two.write("proc/sys/kernel/random/boot_id", "two\n");
  EXPECT_EQ(host_of(one), host_of(one));
  EXPECT_NE(host_of(one).id, host_of(two).id);
  one.remove("proc/sys/kernel/random/boot_id");
  two.remove("proc/sys/kernel/random/boot_id");
  one.write("proc/sys/kernel/hostname", "one\n");
  two.write("proc/sys/kernel/hostname", "two\n");
  EXPECT_NE(host_of(one).id, host_of(two).id);
}

// Whatever is in the files, discovery answers, and the answer can be sent to the other ranks. A pipe must not block it.
TEST(Discover, SurvivesRubbishInEveryFile) {
  const std::vector<std::string> paths = {"proc/cpuinfo",
                                          "proc/self/cgroup",
                                          "proc/sys/kernel/hostname",
                                          "proc/sys/kernel/random/boot_id",
                                          "sys/fs/cgroup/cpu.max",
                                          "sys/devices/system/cpu/online",
                                          "sys/devices/virtual/dmi/id/product_name",
                                          "sys/devices/system/cpu/cpu0/cache/index0/level",
                                          "sys/devices/system/cpu/cpu0/cache/index0/size",
                                          "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
                                          "sys/class/net/eth0/speed",
                                          "sys/class/net/eth0/device/numa_node",
                                          "sys/class/infiniband/rdmap16s27/ports/1/rate",
                                          "sys/devices/virtual/neuron_device/neuron0/core_count",
                                          "sys/devices/virtual/neuron_device/neuron0/connected_devices",
                                          "sys/devices/virtual/neuron_device/neuron7/core_count",
                                          "sys/devices/virtual/neuron_device/neuron7/connected_devices"};
  constexpr unsigned kSeed = 20240607;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const std::vector<std::string> pieces = {"-1",
                                           "0",
                                           "7",
                                           "0, 7",
                                           "99999999999999999999",
                                           "9223372036854775807",
                                           "K",
                                           "G",
                                           "8G",
                                           "\n",
                                           ":",
                                           "0::/",
                                           "MemTotal:",
                                           "model name\t:",
                                           "max",
                                           " 100000",
                                           "\t",
                                           "-",
                                           "1e999",
                                           "nan",
                                           "/etc/passwd",
                                           "../..",
                                           std::string("\0\xff\x01", 3),
                                           std::string(5000, 'a')};
  FakeTree tree;
  tree.write("sys/devices/virtual/dmi/id/sys_vendor", "Amazon EC2");
  tree.write("sys/devices/system/cpu/cpu0/cache/index0/type", "Data");
  tree.write("sys/class/infiniband/rdmap16s27/device/vendor", "0x1d0f");
  tree.make_folder("proc");
  ASSERT_EQ(mkfifo((tree.root() + "/proc/meminfo").c_str(), 0600), 0);
  for (int round = 0; round < 60; ++round) {
    for (const std::string& path : paths) {
      std::string text;
      for (size_t left = random() % 6; left > 0; --left) text += pieces[random() % pieces.size()];
      tree.write(path, text);
    }
    const Host host = host_of(tree);
    const Host again = value_of(host_from_json(to_json(host)));
    EXPECT_EQ(again, host);
    EXPECT_FALSE(to_text(host).empty());
  }
}

TEST(DiscoverThisMachine, GivesSaneValues) {
  const Host host = value_of(discover("/", ""));
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_GE(host.cpus, 1);
  EXPECT_LE(host.cpus, CPU_COUNT(&allowed));
  EXPECT_GE(host.numa_nodes, 1);
  EXPECT_GT(host.memory_bytes, uint64_t{16} << 20);
  EXPECT_FALSE(host.name.empty());
  EXPECT_THAT(host.id, HasSubstr("mnt:"));
  EXPECT_FALSE(host.imposed.has_value());
  EXPECT_EQ(*host_from_json(to_json(host)), host);
  for (const Nic& nic : host.nics) EXPECT_NE(nic.name, "lo");
}

TEST(DiscoverThisMachine, CountsOnlyTheCpusOfTheCallersAffinity) {
  std::thread([] {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    CPU_ZERO(&allowed);
    CPU_SET(first, &allowed);
    ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);  // of this thread only
    EXPECT_EQ(discover("/", "")->cpus, 1);
  }).join();
}

// The id that a child sees after entering namespaces of its own, as a container's process would; "" if that is not
// allowed.
std::string id_in_own_namespace(int flags) {
  const Child child([flags](const PacketSocket& test) {
    if (unshare(flags) == 0) test.send(discover("/", "")->id);
    return 0;
  });
  return child.receive();
}

TEST(DiscoverThisMachine, GivesAContainerAnIdOfItsOwn) {
  const std::string own = discover("/", "")->id;
  for (const int flags : {CLONE_NEWNS, CLONE_NEWIPC}) {
    const std::string other = id_in_own_namespace(flags);
    if (other.empty()) GTEST_SKIP() << "namespaces are not allowed here";
    EXPECT_NE(other, own);
    EXPECT_EQ(other.substr(0, 36), own.substr(0, 36));  // the same boot
  }
}

}  // namespace
}  // namespace ccom
