// SPDX-License-Identifier: Apache-2.0
//
// Every machine of the presets from a recorded tree: by the driver's files, by what neuron-ls printed in each of its
// dialects, and by its name alone. And the cards nearest to its devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topology/fake_machine.h"
#include "topology/topology.h"

namespace ccom {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Machine : public testing::TestWithParam<const char*> {};

TEST_P(Machine, IsFoundByTheDriversFiles) {
  const FakeMachine machine = fake_machine(GetParam());
  const Host host = host_of(machine);
  EXPECT_EQ(host.instance_type, machine.type);
  EXPECT_EQ(host.nics.size(), machine.efa.size() + 1);
  EXPECT_THAT(host.notes, IsEmpty());
  if (machine.devices.empty()) {
    EXPECT_EQ(host.neuron, std::nullopt);
  } else {
    EXPECT_EQ(host.neuron, *make_fabric(machine.type));
  }
  EXPECT_EQ(host.neuron_devices.size(), machine.devices.size());
}

TEST_P(Machine, IsFoundByNeuronLsInEveryDialect) {
  const FakeMachine machine = fake_machine(GetParam());
  if (machine.devices.empty()) return;  // there is no neuron-ls on machines with GPUs
  FakeTree tree;
  write_machine(machine, tree, Shown::Nothing);
  for (const Dialect dialect : {Dialect::Old, Dialect::Logical, Dialect::Newest}) {
    tree.write("neuron-ls.json", neuron_ls_json(machine, dialect));
    const Host host = host_of(tree);
    EXPECT_EQ(host.neuron, *make_fabric(machine.type));
    EXPECT_THAT(host.notes, IsEmpty());
    for (size_t device = 0; device < machine.devices.size(); ++device) {
      EXPECT_EQ(host.neuron_devices[device].pci,
                machine.devices[device].path.substr(machine.devices[device].path.rfind('/') + 1));
      EXPECT_EQ(host.neuron_devices[device].numa_node, machine.devices[device].numa_node);
    }
  }
  tree.remove("neuron-ls.json");
  tree.write("neuron-ls.txt", neuron_ls_table(machine));
  EXPECT_EQ(host_of(tree).neuron, *make_fabric(machine.type));
  EXPECT_EQ(host_of(tree).neuron_devices.back().pci.substr(0, 5), "0000:");
  tree.remove("sys/devices/virtual/dmi");
  EXPECT_EQ(host_of(tree).instance_type, machine.type);  // as neuron-ls says
}

TEST_P(Machine, IsAssumedByItsNameWhereNothingElseShowsIt) {
  const FakeMachine machine = fake_machine(GetParam());
  const Host host = host_of(machine, Shown::Nothing);
  if (machine.devices.empty()) {
    EXPECT_EQ(host.neuron, std::nullopt);
    return;
  }
  EXPECT_EQ(host.neuron, *make_fabric(machine.type));
  EXPECT_THAT(host.notes, Contains(HasSubstr("are assumed")));
}

INSTANTIATE_TEST_SUITE_P(Types, Machine,
                         testing::Values("trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge", "inf2.xlarge",
                                         "inf2.8xlarge", "inf2.24xlarge", "inf2.48xlarge", "trn2.3xlarge",
                                         "trn2.48xlarge", "trn2u.48xlarge", "p4d.24xlarge", "p5.48xlarge",
                                         "p5en.48xlarge"));

// A file may name anything.
TEST(OddMachine, IsNoReasonToFail) {
  for (const char* type : {"trn3-us-gen1", "trn2-ultraserver:x9", "torus4x4", ""}) {
    FakeMachine machine = fake_machine("trn1.32xlarge");
    machine.type = type;
    FakeTree tree;
    write_machine(machine, tree);
    EXPECT_EQ(host_of(tree).neuron->shape, Fabric::Shape::Torus) << type;
    tree.remove("sys/devices/virtual/neuron_device");
    for (int device = 0; device < 64; ++device) tree.add_neuron(device, 8, "");
    EXPECT_EQ(host_of(tree).neuron->devices, 64) << type;
  }
}

TEST(NearestCards, OfTrn1AreTheTwoOfTheDevicesBus) {
  FakeTree tree;
  write_machine(fake_machine("trn1.32xlarge"), tree);
  const Host by_driver = host_of(tree);  // which shows no addresses: the preset knows the buses
  tree.write("neuron-ls.json", neuron_ls_json(fake_machine("trn1.32xlarge"), Dialect::Newest));
  for (const Host& host : {by_driver, host_of(tree)}) {
    EXPECT_THAT(host.neuron_devices[0].nics, ElementsAre("rdmap10s24", "rdmap10s25"));
    EXPECT_THAT(host.neuron_devices[13].nics, ElementsAre("rdmap10s24", "rdmap10s25"));
    EXPECT_THAT(host.neuron_devices[11].nics, ElementsAre("rdmap90s24", "rdmap90s25"));
    EXPECT_THAT(host.neuron_devices[2].nics, ElementsAre("rdmapa0s24", "rdmapa0s25"));
    EXPECT_EQ(host.neuron_devices[2].numa_node, 1);
    EXPECT_THAT(host.notes, IsEmpty());
  }
  EXPECT_EQ(by_driver.nics[1].pci, "0000:10:18.0");
}

TEST(NearestCards, OfTrn2AreEachDevicesOwn) {
  const Host host = host_of(fake_machine("trn2.48xlarge"));
  for (const auto& [device, card, address] : {std::tuple(0, "rdmapc9s0", "0000:cc:00.0"),
                                              {3, "rdmapcas0", "0000:cb:00.0"},
                                              {6, "rdmap56s0", "0000:59:00.0"},
                                              {15, "rdmapf6s0", "0000:f7:00.0"}}) {
    EXPECT_THAT(host.neuron_devices[static_cast<size_t>(device)].nics, ElementsAre(card));
    EXPECT_EQ(host.neuron_devices[static_cast<size_t>(device)].pci, address);
  }
  EXPECT_EQ(host.neuron_devices[4].numa_node, 0);
}

// The same bus addresses under another name: the way on the bus tells, and gives both cards of the switch.
TEST(NearestCards, OfAnUnknownMachineAreThoseAtTheSameSwitch) {
  FakeMachine machine = fake_machine("trn2.48xlarge");
  machine.type = "trn2x.96xlarge";
  FakeTree tree;
  write_machine(machine, tree);
  tree.write("neuron-ls.json", neuron_ls_json(machine, Dialect::Newest));
  const Host host = host_of(tree);
  EXPECT_THAT(host.neuron_devices[0].nics, ElementsAre("rdmapc9s0", "rdmapcas0"));
  EXPECT_THAT(host.neuron_devices[3].nics, ElementsAre("rdmapc9s0", "rdmapcas0"));
  EXPECT_EQ(host.neuron->shape, Fabric::Shape::Torus);
  ASSERT_EQ(host.neuron->uplinks.size(), 8u);
  EXPECT_THAT(host.neuron->uplinks[0].devices, ElementsAre(0, 3));
  EXPECT_DOUBLE_EQ(host.neuron->uplinks[0].speed.bytes_per_second, 2 * 25e9);
}

TEST(NearestCards, AreThoseOfTheNumaNodeWhereTheBusIsNotShown) {
  FakeMachine machine = fake_machine("trn2.48xlarge");
  machine.type = "trn2x.96xlarge";
  FakeTree tree;
  write_machine(machine, tree);
  tree.remove("sys/bus");
  tree.write("neuron-ls.json", neuron_ls_json(machine, Dialect::Newest));
  const Host host = host_of(tree);
  EXPECT_EQ(host.neuron_devices[0].nics.size(), 8u);
  EXPECT_THAT(host.neuron_devices[0].nics, Contains("rdmapf5s0"));
  EXPECT_THAT(host.neuron_devices[0].nics, Not(Contains("rdmap56s0")));
  EXPECT_THAT(host.notes, Not(Contains(HasSubstr("cards"))));
}

TEST(NearestCards, AreDealtOutInTurnWhereNothingIsKnownAndThatIsSaid) {
  FakeMachine machine = fake_machine("trn2.48xlarge");
  machine.type = "trn2x.96xlarge";
  const Host host = host_of(machine);
  EXPECT_THAT(host.neuron_devices[0].nics, ElementsAre(host.nics[1].name));
  EXPECT_THAT(host.neuron_devices[9].nics, ElementsAre(host.nics[10].name));
  EXPECT_THAT(host.notes, Contains(HasSubstr("dealt out in turn")));
}

TEST(NearestCards, OfAMachineWithoutEfaAreItsOtherOnes) {
  EXPECT_THAT(host_of(fake_machine("inf2.48xlarge")).neuron_devices[7].nics, ElementsAre("eth0"));
}

TEST(LogicalCores, AreAsTheRuntimeIsToldElseAsNeuronLsSaysElseAsUsual) {
  FakeMachine machine = fake_machine("trn2.48xlarge");
  FakeTree tree;
  write_machine(machine, tree);
  EXPECT_EQ(host_of(tree).neuron->cores_per_device, 4);
  EXPECT_EQ(host_of(tree, {.tool = "", .cores_per_logical = 1}).neuron->cores_per_device, 8);
  std::string text = neuron_ls_json(machine, Dialect::Newest);
  for (size_t at = 0; (at = text.find("_config\":2", at)) != std::string::npos;) text.replace(at, 10, "_config\":1");
  for (size_t at = 0; (at = text.find("nc_count\":4", at)) != std::string::npos;) text.replace(at, 11, "nc_count\":8");
  tree.write("neuron-ls.json", text);
  EXPECT_EQ(host_of(tree).neuron->cores_per_device, 8);
  EXPECT_EQ(host_of(tree, {.tool = "", .cores_per_logical = 2}).neuron->cores_per_device, 4);
  tree.remove("sys/devices/virtual/neuron_device");
  EXPECT_EQ(host_of(tree).neuron->cores_per_device, 8);
  EXPECT_EQ(host_of(tree, {.tool = "", .cores_per_logical = 2}).neuron->cores_per_device, 4);
}

// What a device's memory gives is shared by twice as many.
TEST(LogicalCores, ShareTheSpeedInsideADevice) {
  FakeTree tree;
  write_machine(fake_machine("trn2.48xlarge"), tree);
  const double two = host_of(tree).neuron->inside_device.bytes_per_second;
  const double one = host_of(tree, {.tool = "", .cores_per_logical = 1}).neuron->inside_device.bytes_per_second;
  EXPECT_DOUBLE_EQ(one, two / 2);
  for (int device = 12; device < 16; ++device) {  // also of a part of the machine
    tree.remove("sys/devices/virtual/neuron_device/neuron" + std::to_string(device));
  }
  EXPECT_DOUBLE_EQ(host_of(tree).neuron->inside_device.bytes_per_second, two);
}

TEST(LogicalCores, OfChipsWithTwoAreTheirOwnWhateverIsAskedFor) {
  FakeTree tree;
  write_machine(fake_machine("trn1.32xlarge"), tree);
  EXPECT_EQ(host_of(tree, {.tool = "", .cores_per_logical = 2}).neuron->cores_per_device, 2);
}

TEST(LogicalCores, ComeFromEitherVariableOfTheRuntime) {
  const auto hints = [](const char* now, const char* before) {
    return neuron_hints([=](const char* name) {
             return std::string(name) == "NEURON_LOGICAL_NC_CONFIG"      ? now
                    : std::string(name) == "NEURON_RT_VIRTUAL_CORE_SIZE" ? before
                                                                         : nullptr;
           })
        .cores_per_logical;
  };
  EXPECT_EQ(hints(nullptr, nullptr), 0);
  EXPECT_EQ(hints("1", nullptr), 1);
  EXPECT_EQ(hints(nullptr, "2"), 2);
  EXPECT_EQ(hints("1", "2"), 1);
  EXPECT_EQ(hints("", "2"), 2);
  EXPECT_EQ(hints("3", nullptr), 0);
  EXPECT_EQ(hints("two", nullptr), 0);
}

}  // namespace
}  // namespace ccom
