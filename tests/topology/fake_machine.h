// SPDX-License-Identifier: Apache-2.0
//
// Whole machines as recorded trees, after what AWS's documentation, driver and lspci print of them: devices, cards, and
// the PCI bus between them. And what neuron-ls prints there.
#pragma once

#include <string>
#include <vector>

#include "tests/topology/fake_tree.h"

namespace ccom {

struct FakeDevice {
  int number = 0;
  std::string path;  // on the PCI bus: "pci0000:10/0000:10:1b.0"
  int numa_node = -1;
  std::string connected;
};

struct FakeCard {
  std::string name;
  std::string path;
  int numa_node = -1;
};

struct FakeMachine {
  std::string type;
  int physical_cores = 0;  // of each device
  int cores_per_logical = 1;
  std::vector<FakeDevice> devices;
  std::vector<FakeCard> efa;
  int efa_gbits = 0;
};

// By instance type; one that has no Neuron devices has none here.
FakeMachine fake_machine(const std::string& type);

enum class Shown { Driver, Nothing };  // do the driver's files show the devices?
void write_machine(const FakeMachine& machine, FakeTree& tree, Shown shown = Shown::Driver);
Host host_of(const FakeMachine& machine, Shown shown = Shown::Driver);

// What `neuron-ls -j` has printed over time: without core numbers and with short addresses; with core numbers and
// logical cores; and with the instance type.
enum class Dialect { Old, Logical, Newest };
std::string neuron_ls_json(const FakeMachine& machine, Dialect dialect);
// The table of a release that had no JSON.
std::string neuron_ls_table(const FakeMachine& machine);

}  // namespace ccom
