// SPDX-License-Identifier: Apache-2.0
//
// neuron-ls as a text in each of its forms, and as a program that may hang, chatter, fail, or know no JSON.
#include "topology/neuron_ls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>

#include "tests/topology/fake_machine.h"
#include "topology/pci.h"
#include "topology/topology.h"

namespace ccom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NeuronLs, IsReadAsPrintedOnATrn1WithOneChip) {
  const auto listing = parse_neuron_ls(
      R"([{"neuron_device":0,"bdf":"0000:00:1e.0","cpu_affinity":"0-7","numa_node":"-1","connected_to":null,)"
      R"("nc_count":2,"memory_size":34359738368,"neuroncore_ids":[0,1],"neuron_processes":[]}])");
  ASSERT_TRUE(listing.has_value());
  EXPECT_THAT(listing->devices, ElementsAre(SeenDevice{0, 2, 0, std::set<int>{}, "0000:00:1e.0", -1}));
}

TEST(NeuronLs, IsReadAsPrintedOnATrn2) {
  const auto listing = parse_neuron_ls(
      R"([{"neuron_device":3,"bdf":"cb:00.0","cpu_affinity":"48-95,144-191","numa_node":"1","connected_to":[15,2,7,0],)"
      R"("nc_count":4,"logical_neuroncore_config":2,"memory_size":103079215104,"neuroncore_ids":[12,13,14,15],)"
      R"("neuron_processes":[{"pid":1,"command":"python3","neuron_runtime_version":"2.0"}],)"
      R"("instance_type":"trn2.48xlarge"}])");
  ASSERT_TRUE(listing.has_value());
  EXPECT_EQ(listing->instance_type, "trn2.48xlarge");
  EXPECT_THAT(listing->devices, ElementsAre(SeenDevice{3, 8, 2, std::set<int>{0, 2, 7, 15}, "0000:cb:00.0", 1}));
}

TEST(NeuronLs, IsReadFromTheNewestTable) {
  const auto listing = parse_neuron_ls(
      "instance-type: trn2.48xlarge\ninstance-id: i-0\nlogical-neuroncore-config: 2\n"
      "+--------+--------+----------+--------+--------------+--------------+---------------+------+\n"
      "| NEURON | NEURON |  NEURON  | NEURON |  CONNECTED   |     PCI      |      CPU      | NUMA |\n"
      "| DEVICE | CORES  | CORE IDS | MEMORY |   DEVICES    |     BDF      |   AFFINITY    | NODE |\n"
      "+--------+--------+----------+--------+--------------+--------------+---------------+------+\n"
      "| 0      | 4      | 0-3      | 96 GB  | 12, 3, 4, 1  | 0000:cc:00.0 | 48-95,144-191 | 1    |\n"
      "| 1      | 4      | 4-7      | 96 GB  | 13, 0, 5, 2  | 0000:b5:00.0 | 48-95,144-191 | 1    |\n"
      "+--------+--------+----------+--------+--------------+--------------+---------------+------+");
  ASSERT_TRUE(listing.has_value());
  EXPECT_THAT(listing->devices, ElementsAre(SeenDevice{0, 8, 2, std::set<int>{1, 3, 4, 12}, "0000:cc:00.0", 1},
                                            SeenDevice{1, 8, 2, std::set<int>{0, 2, 5, 13}, "0000:b5:00.0", 1}));
}

TEST(NeuronLs, IsNotReadFromAnythingElse) {
  for (const char* text : {"", "[", "[]", "{}", "[1]", "[{}]", R"([{"neuron_device":-1}])",
                           R"([{"neuron_device":"x"}])", R"([{"neuron_device":0},{"neuron_device":0}])", "| 0 | 2 |",
                           "no driver", "|", "||||", "| NEURON DEVICE |\n| 0 |"}) {
    EXPECT_FALSE(parse_neuron_ls(text).has_value()) << text;
  }
  const auto bare = parse_neuron_ls(R"([{"neuron_device":0,"nc_count":-3,"numa_node":{},"bdf":7,"connected_to":"x"}])");
  ASSERT_TRUE(bare.has_value());
  EXPECT_EQ(bare->devices[0], SeenDevice{});
}

TEST(Pci, AddressesAreWrittenInOneWay) {
  for (const char* text : {"0000:59:00.0", "0:59:00.0", "59:00.0", " 59:0.0\n", "00000000:59:00.0"}) {
    EXPECT_EQ(normalised_pci(text), "0000:59:00.0") << text;
  }
  EXPECT_EQ(normalised_pci("10000:E1:1f.7"), "10000:e1:1f.7");
  for (const char* text : {"", ".", ":", "59", "59:00", "59.0", ":00.0", "59:20.0", "59:00.8", "x:00.0", "159:00.0",
                           "-1:00.0", "0:0:59:00.0", "59:00.0.0", "virtio0"}) {
    EXPECT_EQ(normalised_pci(text), "") << text;
  }
}

TEST(Pci, NearnessIsTheWayInCommon) {
  const std::string a = "pci0000:50/0000:50:01.0/0000:51:00.0/0000:59:00.0";
  EXPECT_EQ(shared_bridges(a, "pci0000:50/0000:50:01.0/0000:51:00.0/0000:56:00.0"), 3);
  EXPECT_EQ(shared_bridges(a, "pci0000:50/0000:50:02.0/0000:61:00.0"), 1);
  EXPECT_EQ(shared_bridges(a, "pci0000:60/0000:61:00.0"), 0);
  EXPECT_EQ(shared_bridges(a, ""), 0);
}

class Tool : public testing::Test {
 protected:
  // The tree has no driver; discovery runs a shell script with this body.
  std::optional<Fabric> run(const std::string& body, int64_t timeout_ms = 20000) {
    tree_.write("tool", "#!/bin/sh\n" + body + "\n");
    const std::string path = tree_.root() + "/tool";
    EXPECT_EQ(chmod(path.c_str(), 0700), 0);
    const Result<Host> host = discover(tree_.root(), "", {.tool = path, .tool_timeout_ms = timeout_ms});
    EXPECT_TRUE(host.has_value());
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
    EXPECT_EQ(errno, ECHILD);
    return host->neuron;
  }
  void keep(const std::string& name, const std::string& text) { tree_.write(name, text); }
  std::string path(const std::string& name) const { return tree_.root() + "/" + name; }
  FakeTree& tree() { return tree_; }

 private:
  FakeTree tree_;
};

TEST_F(Tool, IsAskedWhereTheDriverShowsNothing) {
  keep("listing", neuron_ls_json(fake_machine("trn1.32xlarge"), Dialect::Newest));
  EXPECT_EQ(run("test \"$1\" = -j && cat " + path("listing")), *make_fabric("trn1.32xlarge"));
}

TEST_F(Tool, IsAskedWhereTheDriversFilesCannotBeRead) {
  for (int device = 0; device < 16; ++device) {
    tree().add_neuron(device, 2, "");
    const std::string file = "sys/devices/virtual/neuron_device/neuron" + std::to_string(device) + "/connected_devices";
    tree().remove(file);
    tree().make_folder(file);
  }
  keep("listing", neuron_ls_json(fake_machine("trn1.32xlarge"), Dialect::Newest));
  EXPECT_EQ(run("cat " + path("listing")), *make_fabric("trn1.32xlarge"));
}

TEST_F(Tool, IsNotRunWhereTheDriverShowsAll) {
  write_machine(fake_machine("inf2.24xlarge"), tree());
  EXPECT_EQ(run("touch " + path("was-run")), *make_fabric("inf2.24xlarge"));
  struct stat info {};
  EXPECT_NE(stat(path("was-run").c_str(), &info), 0);
}

TEST_F(Tool, IsAskedForTheTableIfItKnowsNoJson) {
  keep("listing", neuron_ls_table(fake_machine("inf2.24xlarge")));
  EXPECT_EQ(run("test $# = 0 || exit 2; cat " + path("listing")), *make_fabric("inf2.24xlarge"));
  EXPECT_EQ(run("cat " + path("listing")), *make_fabric("inf2.24xlarge"));  // or it ignores the option
}

TEST_F(Tool, ThatFailsOrPrintsRubbishIsNoError) {
  for (const char* body :
       {"exit 1", "echo no driver", "kill -9 $$", "echo '[{'", ":", "exec 1>&-; sleep 0.1; exit 3"}) {
    EXPECT_EQ(run(body), std::nullopt) << body;
  }
  const Result<Host> host = discover(tree().root(), "", {.tool = "/no/such/neuron-ls"});
  EXPECT_EQ(host->neuron, std::nullopt);
}

TEST_F(Tool, ThatHangsOrChattersIsEndedWithItsChildren) {
  using std::chrono::steady_clock;
  for (const char* body : {"sleep 1000", "sleep 1000 & sleep 1000", "exec 1>&-; sleep 1000", "trap '' TERM; sleep 1000",
                           "while :; do echo chatter; done", "yes"}) {
    const auto start = steady_clock::now();
    EXPECT_EQ(run(body, 200), std::nullopt) << body;
    EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(20)) << body;
  }
}

}  // namespace
}  // namespace ccom
