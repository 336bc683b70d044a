// SPDX-License-Identifier: Apache-2.0
//
// Machines of which less is there, or seen, than the instance type has: the fabric is what is there, and a sentence
// says what is missing. And devices that were given other numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/topology/fake_machine.h"
#include "tools/topo/text.h"
#include "topology/topology.h"

namespace ccom {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

FakeMachine with_devices(const std::string& type, const std::vector<int>& numbers) {
  FakeMachine machine = fake_machine(type);
  std::erase_if(machine.devices,
                [&](const FakeDevice& device) { return std::ranges::find(numbers, device.number) == numbers.end(); });
  return machine;
}

void replace_neighbours(FakeMachine& machine, int device, const std::string& text) {
  machine.devices[static_cast<size_t>(device)].connected = text;
}

TEST(PartialMachine, OfARowIsARingAndSaysWhichDevicesAreMissing) {
  const Host host = host_of(with_devices("trn1.32xlarge", {4, 5, 6, 7}));
  EXPECT_EQ(host.neuron->shape, Fabric::Shape::Ring);
  EXPECT_EQ(host.neuron->links.size(), 8u);
  EXPECT_EQ(host.neuron->links[0].speed, make_fabric("trn1.32xlarge")->links[0].speed);
  EXPECT_EQ(host.neuron_devices[2].number, 6);
  EXPECT_THAT(host.notes,
              ElementsAre("4 of the 16 devices of trn1.32xlarge are visible; missing: 0, 1, 2, 3, 8, 9, 10, "
                          "11 and 4 more."));
  // Devices 4 and 5 hang at bus 20, 6 and 7 at bus 90; both have two cards of 100 Gb/s.
  EXPECT_THAT(host.neuron_devices[2].nics, ElementsAre("rdmap90s24", "rdmap90s25"));
  ASSERT_EQ(host.neuron->uplinks.size(), 2u);
  EXPECT_THAT(host.neuron->uplinks[1].devices, ElementsAre(2, 3));
  EXPECT_DOUBLE_EQ(host.neuron->uplinks[1].speed.bytes_per_second, 25e9);
}

TEST(PartialMachine, OfTwoRowsIsATorusAndOfOneDeviceASingle) {
  const Host two = host_of(with_devices("trn2.48xlarge", {8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(two.neuron->shape, Fabric::Shape::Torus);
  EXPECT_THAT(two.neuron->dims, ElementsAre(2, 4));
  EXPECT_EQ(two.neuron->cores_per_device, 4);
  EXPECT_THAT(two.neuron_devices[0].nics, ElementsAre("rdmap98s0"));
  const Host one = host_of(with_devices("trn1.32xlarge", {9}));
  EXPECT_EQ(one.neuron->shape, Fabric::Shape::Single);
  EXPECT_EQ(one.neuron->cores_per_device, 2);
  EXPECT_THAT(one.notes, ElementsAre(HasSubstr("1 of the 16 devices")));
}

TEST(PartialMachine, OfConsecutiveDevicesOfInf2IsAChain) {
  const Host host = host_of(with_devices("inf2.48xlarge", {3, 4, 5}));
  EXPECT_EQ(host.neuron->shape, Fabric::Shape::Chain);
  EXPECT_THAT(host.neuron->dims, ElementsAre(3));
  EXPECT_THAT(host.notes, ElementsAre(HasSubstr("3 of the 12 devices of inf2.48xlarge are visible; missing: 0, 1, 2")));
}

// A container with four devices, numbered from 0 and without neighbours, as the driver shows them then: nothing may be
// made up.
TEST(PartialMachine, InAContainerHasNoLinksAndNoSeats) {
  FakeMachine machine = with_devices("trn1.32xlarge", {0, 1, 2, 3});
  for (FakeDevice& device : machine.devices) device.connected = "";
  const Host host = host_of(machine);
  EXPECT_EQ(host.neuron->shape, Fabric::Shape::Other);
  EXPECT_TRUE(host.neuron->links.empty());
  EXPECT_EQ(host.neuron->devices, 4);
  EXPECT_EQ(host.neuron->cores_per_device, 2);
  EXPECT_EQ(host.neuron->name, "trn1.32xlarge (4 devices)");
  EXPECT_THAT(host.notes, Contains("4 of the 16 devices of trn1.32xlarge are visible."));
  EXPECT_THAT(host.notes, Contains(HasSubstr("No links are shown")));
  EXPECT_THAT(host.notes, Contains(HasSubstr("dealt out in turn")));
  EXPECT_THAT(host.neuron_devices[1].nics, ElementsAre(host.nics[2].name));
}

TEST(PartialMachine, WithAMissingDeviceIsWhatIsLeft) {
  std::vector<int> numbers(16);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::erase(numbers, 5);
  const Host host = host_of(with_devices("trn2.48xlarge", numbers));
  EXPECT_EQ(host.neuron->shape, Fabric::Shape::Other);
  EXPECT_EQ(host.neuron->devices, 15);
  EXPECT_EQ(host.neuron->links.size(), 64u - 8);
  EXPECT_THAT(host.notes, ElementsAre("15 of the 16 devices of trn2.48xlarge are visible; missing: 5."));
  EXPECT_EQ(host.neuron_devices[5].number, 6);
  EXPECT_THAT(host.neuron_devices[5].nics, ElementsAre("rdmap56s0"));
}

TEST(PartialMachine, WithABrokenLinkNamesIt) {
  FakeMachine machine = fake_machine("trn1.32xlarge");
  replace_neighbours(machine, 0, "3, 4, 1");
  replace_neighbours(machine, 12, "8, 15, 13");
  const Host host = host_of(machine);
  EXPECT_EQ(host.neuron->shape, Fabric::Shape::Other);
  EXPECT_EQ(host.neuron->links.size(), 62u);
  EXPECT_FALSE(host.neuron->linked(0, 12));
  EXPECT_THAT(host.notes, ElementsAre("Link 0-12 of trn1.32xlarge is missing."));
  EXPECT_EQ(host.neuron_devices[13].nics, (std::vector<std::string>{"rdmap10s24", "rdmap10s25"}));
}

TEST(PartialMachine, WithALinkThatOneEndReportsLeavesItOutAndSaysSo) {
  FakeMachine machine = fake_machine("inf2.48xlarge");
  replace_neighbours(machine, 7, "6");
  const Host host = host_of(machine);
  EXPECT_EQ(host.neuron->shape, Fabric::Shape::Chain);
  EXPECT_EQ(host.neuron_devices[0].number, 7);  // an end of the chain
  EXPECT_EQ(host.neuron_devices[11].number, 8);
  EXPECT_THAT(host.notes, Contains("Link 7-8 of inf2.48xlarge is missing."));
  EXPECT_THAT(host.notes, Contains("Device 8 reports a link to 7, which does not report it; left out."));
}

TEST(PartialMachine, ThatFallsApartSaysSo) {
  FakeMachine machine = fake_machine("inf2.24xlarge");
  replace_neighbours(machine, 2, "1");
  replace_neighbours(machine, 3, "4");
  EXPECT_THAT(host_of(machine).notes, Contains(HasSubstr("separate groups")));
}

FakeMachine renumbered(const std::string& type, unsigned seed) {
  FakeMachine machine = fake_machine(type);
  std::vector<std::string> names;
  for (const FakeDevice& device : machine.devices) names.push_back(std::to_string(device.number));
  std::shuffle(names.begin(), names.end(), std::mt19937(seed));
  const FakeMachine before = machine;
  for (size_t i = 0; i < names.size(); ++i) {
    machine.devices[i].number = std::stoi(names[i]);
    std::string connected;
    for (const std::string& word : {before.devices[i].connected}) {
      for (size_t at = 0; at < word.size();) {
        const size_t end = std::min(word.find(", ", at), word.size());
        connected += (connected.empty() ? "" : ", ") + names[static_cast<size_t>(std::stoi(word.substr(at, end - at)))];
        at = std::min(end + 2, word.size());
      }
    }
    machine.devices[i].connected = connected;
  }
  return machine;
}

TEST(RenumberedMachine, IsATorusWhosePlacesLeadBackToTheNumbers) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    const FakeMachine machine = renumbered("trn1.32xlarge", seed);
    const Host host = host_of(machine);
    ASSERT_EQ(host.neuron->shape, Fabric::Shape::Torus) << seed;
    EXPECT_EQ(host.neuron->links, make_fabric("trn1.32xlarge")->links);
    EXPECT_THAT(host.notes, Contains(HasSubstr("renumbered")));
    for (const Link& link : host.neuron->links) {
      const int from = host.neuron_devices[static_cast<size_t>(link.from)].number;
      const std::string to = std::to_string(host.neuron_devices[static_cast<size_t>(link.to)].number);
      const auto device = std::ranges::find(machine.devices, from, &FakeDevice::number);
      EXPECT_THAT(", " + device->connected + ",", HasSubstr(", " + to + ",")) << seed;
    }
  }
}

// By address the cards are found whatever the numbers are.
TEST(RenumberedMachine, HasItsCardsByAddress) {
  const FakeMachine machine = renumbered("trn2.48xlarge", 7);
  FakeTree tree;
  write_machine(machine, tree);
  tree.write("neuron-ls.json", neuron_ls_json(machine, Dialect::Newest));
  const Host host = host_of(tree);
  const auto device = std::ranges::find(host.neuron_devices, "0000:59:00.0", &NeuronDevice::pci);
  ASSERT_NE(device, host.neuron_devices.end());
  EXPECT_THAT(device->nics, ElementsAre("rdmap56s0"));
  const auto place = static_cast<int>(device - host.neuron_devices.begin());
  EXPECT_TRUE(std::ranges::any_of(host.neuron->uplinks, [&](const Uplink& uplink) {
    return uplink.devices == std::vector<int>{place} && uplink.speed.bytes_per_second == 25e9;
  }));
}

TEST(RenumberedMachine, WithABrokenLinkSaysHowManyLinksAreThere) {
  FakeMachine machine = renumbered("trn1.32xlarge", 3);
  FakeDevice& one = machine.devices[0];
  const std::string gone = one.connected.substr(0, one.connected.find(','));
  one.connected = one.connected.substr(gone.size() + 2);
  const Host host = host_of(machine);
  EXPECT_EQ(host.neuron->shape, Fabric::Shape::Other);
  EXPECT_THAT(host.notes, Contains(HasSubstr("31 of its 32 links")));
}

TEST(PartialMachine, IsMergedToTheViewWithTheMostDevices) {
  Host some = host_of(with_devices("trn1.32xlarge", {4, 5, 6, 7}));
  Host all = host_of(fake_machine("trn1.32xlarge"));
  Host none = all;
  none.neuron = std::nullopt;
  none.neuron_devices.clear();
  none.instance_type.clear();
  some.id = all.id = none.id = "host";
  for (const auto& views : {std::vector<RankView>{{none}, {some}, {all}}, {{all}, {none}, {some}}, {{some}, {all}}}) {
    const Topology topology = *merge(views);
    ASSERT_EQ(topology.hosts.size(), 1u);
    EXPECT_EQ(topology.hosts[0].neuron, all.neuron);
    EXPECT_EQ(topology.hosts[0].neuron_devices, all.neuron_devices);
    EXPECT_EQ(topology.hosts[0].instance_type, "trn1.32xlarge");
    EXPECT_THAT(topology.hosts[0].notes, IsEmpty());
    EXPECT_EQ(*topology_from_json(to_json(topology)), topology);
  }
}

TEST(Impose, OfNeuronTakesWhatWasFound) {
  Host host = host_of(renumbered("trn1.32xlarge", 5));
  ASSERT_TRUE(impose(host, "neuron").is_ok());
  EXPECT_EQ(host.imposed, host.neuron);
  EXPECT_EQ(host.imposed->shape, Fabric::Shape::Torus);
  ASSERT_TRUE(impose(host, "ring:4").is_ok());
  EXPECT_EQ(host.imposed, *make_fabric("ring:4"));
  EXPECT_THAT(impose(host, "ring:x").message(), HasSubstr("not a number"));
}

TEST(Impose, OfNeuronIsAnErrorWhereNothingOrTooLittleIsKnown) {
  Host none = host_of(fake_machine("p5.48xlarge"));
  EXPECT_THAT(impose(none, "neuron").message(), HasSubstr("no Neuron device was found"));
  FakeMachine machine = with_devices("trn1.32xlarge", {0, 1, 2, 3});
  for (FakeDevice& device : machine.devices) device.connected = "";
  Host some = host_of(machine);
  EXPECT_EQ(impose(some, "neuron").code(), Code::ConfigError);
  EXPECT_THAT(impose(some, "neuron").message(), HasSubstr("do not join its 4 devices"));
  EXPECT_EQ(some.imposed, std::nullopt);
}

TEST(PartialMachine, IsShownWithItsNotesAndCards) {
  const std::string text = to_text(host_of(with_devices("trn1.32xlarge", {4, 5, 6, 7})));
  EXPECT_THAT(text, HasSubstr("  notes:     4 of the 16 devices of trn1.32xlarge are visible; missing"));
  EXPECT_THAT(text, HasSubstr("      place  /dev/neuron  pci           NUMA  nearest cards\n"));
  EXPECT_THAT(text, HasSubstr("          2            6  -                1  rdmap90s24 rdmap90s25\n"));
}

}  // namespace
}  // namespace ccom
