// SPDX-License-Identifier: Apache-2.0
//
// Discovery of Neuron devices from recorded trees: the driver's dialects, and what is left when it shows little.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topology/fake_tree.h"
#include "topology/topology.h"

namespace ccom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kFolder[] = "sys/devices/virtual/neuron_device/neuron";

std::optional<Fabric> neuron_of(const FakeTree& tree) {
  const Result<Host> host = discover(tree.root(), "");
  EXPECT_TRUE(host.has_value());
  return host ? host->neuron : std::nullopt;
}

void add_torus(FakeTree& tree, int physical_cores, const std::vector<std::string>& neighbours) {
  for (int device = 0; device < 16; ++device) {
    tree.add_neuron(device, physical_cores, neighbours[static_cast<size_t>(device)]);
  }
}

TEST(DiscoverNeuron, FindsNothingWhereThereIsNothing) {
  FakeTree tree;
  EXPECT_EQ(neuron_of(tree), std::nullopt);
  tree.make_folder("sys/devices/virtual/neuron_device");
  tree.make_folder("sys/devices/virtual/neuron_device/power");
  EXPECT_EQ(neuron_of(tree), std::nullopt);
}

TEST(DiscoverNeuron, TakesNeighboursInAnyOrder) {
  for (const auto& order : {neighbours_in_grid_order(), neighbours_in_port_order()}) {
    FakeTree trn1;
    trn1.set_instance_type("trn1.32xlarge");
    add_torus(trn1, 2, order);
    EXPECT_EQ(neuron_of(trn1), *make_fabric("trn1.32xlarge"));
    FakeTree trn2;
    trn2.set_instance_type("trn2.48xlarge");
    add_torus(trn2, 8, order);
    EXPECT_EQ(neuron_of(trn2), *make_fabric("trn2.48xlarge"));
  }
}

// Without an instance type the graph is recognised all the same, and the core count tells the generation.
TEST(DiscoverNeuron, RecognisesTheTorusWithoutAnInstanceType) {
  FakeTree tree;
  add_torus(tree, 8, neighbours_in_port_order());
  const Fabric fabric = neuron_of(tree).value();
  EXPECT_EQ(fabric.shape, Fabric::Shape::Torus);
  EXPECT_THAT(fabric.dims, ElementsAre(4, 4));
  EXPECT_EQ(fabric.cores_per_device, 4);
  EXPECT_EQ(fabric.links, make_fabric("trn2.48xlarge")->links);
}

TEST(DiscoverNeuron, RecognisesRingsChainsAndSingleDevices) {
  FakeTree chain;
  for (const auto& [device, text] : {std::pair(0, "1"), {1, "0, 2"}, {2, "1"}}) chain.add_neuron(device, 2, text);
  EXPECT_EQ(neuron_of(chain)->shape, Fabric::Shape::Chain);
  EXPECT_EQ(neuron_of(chain)->links.size(), 4u);
  FakeTree ring;
  for (int i = 0; i < 12; ++i)
    ring.add_neuron(i, 2, std::to_string((i + 11) % 12) + ", " + std::to_string((i + 1) % 12));
  EXPECT_EQ(neuron_of(ring)->shape, Fabric::Shape::Ring);
  ring.set_instance_type("inf2.48xlarge");
  EXPECT_EQ(neuron_of(ring), *make_fabric("inf2.48xlarge"));
  FakeTree single;
  single.add_neuron(0, 2, "");
  EXPECT_EQ(neuron_of(single)->shape, Fabric::Shape::Single);
  EXPECT_EQ(neuron_of(single)->cores_per_device, 2);
}

// A link counts only if both of its ends are visible and report it.
TEST(DiscoverNeuron, DropsLinksToHiddenDevices) {
  FakeTree tree;
  const auto order = neighbours_in_grid_order();
  for (int device = 4; device < 8; ++device) tree.add_neuron(device, 2, order[static_cast<size_t>(device)]);
  const Fabric fabric = neuron_of(tree).value();
  EXPECT_EQ(fabric.shape, Fabric::Shape::Ring);  // one row of the torus
  EXPECT_TRUE(fabric.linked(0, 3));
  tree.add_neuron(4, 2, "0, 8, 5");  // no longer reports 7, though 7 still reports 4
  EXPECT_EQ(neuron_of(tree)->shape, Fabric::Shape::Chain);
}

TEST(DiscoverNeuron, FallsBackToThePresetWhereNeighboursCannotBeRead) {
  FakeTree tree;
  tree.set_instance_type("trn2.48xlarge");
  add_torus(tree, 8, neighbours_in_grid_order());
  for (int device = 0; device < 16; ++device) {
    const std::string path = kFolder + std::to_string(device) + "/connected_devices";
    tree.remove(path);
    if (device % 2 == 0) tree.make_folder(path);  // is there, cannot be read
  }
  EXPECT_EQ(neuron_of(tree), *make_fabric("trn2.48xlarge"));
  for (int device = 4; device < 16; ++device) tree.remove(kFolder + std::to_string(device));
  const Fabric some = neuron_of(tree).value();
  EXPECT_EQ(some.devices, 4);
  EXPECT_TRUE(some.links.empty());
  EXPECT_THAT(some.name, HasSubstr("not readable"));
  tree.remove("sys/devices/virtual/dmi");
  EXPECT_EQ(neuron_of(tree)->cores_per_device, 4);
}

}  // namespace
}  // namespace ccom
