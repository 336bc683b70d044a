// SPDX-License-Identifier: Apache-2.0
#include "tests/topology/fake_machine.h"

#include <array>
#include <cstdio>
#include <map>

namespace ccom {
namespace {

std::string address_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string number_text(const char* pattern, int number) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, number);
  return text;
}

// Four buses of four devices; `cards` EFA functions on each.
FakeMachine trn1(const std::string& type, int cards) {
  struct Bus {
    const char* name;
    int numa_node;
    std::array<int, 4> devices;
  };
  constexpr std::array kBuses = {Bus{"10", 0, {0, 1, 12, 13}}, Bus{"20", 0, {4, 5, 8, 9}}, Bus{"90", 1, {6, 7, 10, 11}},
                                 Bus{"a0", 1, {2, 3, 14, 15}}};
  FakeMachine machine{.type = type, .physical_cores = 2, .devices = std::vector<FakeDevice>(16), .efa = {}};
  machine.efa_gbits = 100;
  for (const Bus& bus : kBuses) {
    const std::string root = std::string("pci0000:") + bus.name + "/0000:" + bus.name + ":";
    for (int slot = 0; slot < 4; ++slot) {
      const int device = bus.devices[static_cast<size_t>(slot)];
      machine.devices[static_cast<size_t>(device)] = {device, root + number_text("1%x.0", 11 + slot), bus.numa_node,
                                                      neighbours_in_grid_order()[static_cast<size_t>(device)]};
    }
    for (int card = 0; card < cards; ++card) {
      const std::string name = std::string("rdmap") + bus.name + "s" + std::to_string(25 - card);
      machine.efa.push_back({name, root + number_text("%x.0", 25 - card), bus.numa_node});
    }
  }
  return machine;
}

// Eight switches with two devices and a card for each of them.
FakeMachine trn2(const std::string& type) {
  constexpr std::array kDevice = {"cc", "b5", "b6", "cb", "6f", "58", "59", "6e",
                                  "9b", "84", "85", "9a", "f8", "e1", "e2", "f7"};
  constexpr std::array kCard = {"c9", "b4", "b3", "ca", "6c", "57", "56", "6d",
                                "98", "83", "82", "99", "f5", "e0", "df", "f6"};
  const auto path_of = [](const std::string& bus) {
    // Buses of one switch are neighbours: 56-59, 6c-6f, 82-85, ...
    const int number = std::stoi(bus, nullptr, 16);
    int first = 0;
    for (const int start : {0x56, 0x6c, 0x82, 0x98, 0xb3, 0xc9, 0xdf, 0xf5}) first = start <= number ? start : first;
    return number_text("pci0000:%02x/", first - 2) + number_text("0000:%02x:00.0/", first - 1) + "0000:" + bus +
           ":00.0";
  };
  FakeMachine machine{.type = type, .physical_cores = 8, .cores_per_logical = 2, .devices = {}, .efa = {}};
  machine.efa_gbits = 200;
  for (int device = 0; device < 16; ++device) {
    const auto at = static_cast<size_t>(device);
    const int numa_node = device < 4 || device >= 12 ? 1 : 0;
    machine.devices.push_back({device, path_of(kDevice[at]), numa_node, neighbours_in_port_order()[at]});
    machine.efa.push_back({std::string("rdmap") + kCard[at] + "s0", path_of(kCard[at]), numa_node});
  }
  return machine;
}

FakeMachine inf2(const std::string& type, int devices, bool is_ring) {
  FakeMachine machine{.type = type, .physical_cores = 2, .devices = {}, .efa = {}};
  for (int device = 0; device < devices; ++device) {
    std::string connected;
    if (device > 0 || is_ring) connected = std::to_string((device + devices - 1) % devices);
    if (device + 1 < devices || is_ring) {
      connected += (connected.empty() ? "" : ", ") + std::to_string((device + 1) % devices);
    }
    machine.devices.push_back({device, number_text("pci0000:00/0000:00:%02x.0", 16 + device), -1, connected});
  }
  return machine;
}

FakeMachine single(const std::string& type, int physical_cores, int cards) {
  FakeMachine machine = inf2(type, 1, false);
  machine.physical_cores = physical_cores;
  machine.cores_per_logical = physical_cores == 8 ? 2 : 1;
  if (cards > 0) machine.efa.push_back({"rdmap0s6", "pci0000:00/0000:00:06.0", -1});
  machine.efa_gbits = 200;
  return machine;
}

// GPUs are no Neuron devices, and nothing in these trees shows them.
FakeMachine gpus(const std::string& type, int cards, int gbits) {
  FakeMachine machine{.type = type, .devices = {}, .efa = {}};
  machine.efa_gbits = gbits;
  for (int card = 0; card < cards; ++card) {
    const std::string path = number_text("pci0000:44/0000:45:00.0/0000:%02x:00.0", 0x4f + card);
    machine.efa.push_back({number_text("rdmap%ds0", 79 + card), path, card < cards / 2 ? 0 : 1});
  }
  return machine;
}

void add_pci(FakeTree& tree, const std::string& path, int numa_node) {
  tree.write("sys/devices/" + path + "/vendor", "0x1d0f\n");
  tree.write("sys/devices/" + path + "/numa_node", std::to_string(numa_node) + "\n");
  tree.make_link("sys/bus/pci/devices/" + address_of(path), "../../../devices/" + path);
}

void add_efa(FakeTree& tree, const FakeCard& card, int gbits) {
  add_pci(tree, card.path, card.numa_node);
  tree.make_link("sys/devices/" + card.path + "/driver", "../../../bus/pci/drivers/efa");
  tree.make_link("sys/class/infiniband/" + card.name + "/device", "../../../devices/" + card.path);
  tree.write("sys/class/infiniband/" + card.name + "/ports/1/rate", std::to_string(gbits) + " Gb/sec (4X EDR)\n");
}

}  // namespace

FakeMachine fake_machine(const std::string& type) {
  if (type == "trn1.32xlarge") return trn1(type, 2);
  if (type == "trn1n.32xlarge") return trn1(type, 4);
  if (type == "trn2.48xlarge" || type == "trn2u.48xlarge") return trn2(type);
  if (type == "inf2.48xlarge") return inf2(type, 12, true);
  if (type == "inf2.24xlarge") return inf2(type, 6, false);
  if (type == "trn2.3xlarge") return single(type, 8, 1);
  if (type == "p4d.24xlarge") return gpus(type, 4, 100);
  if (type == "p5.48xlarge") return gpus(type, 32, 100);
  if (type == "p5en.48xlarge") return gpus(type, 16, 200);
  return single(type, 2, 0);  // trn1.2xlarge, inf2.xlarge, inf2.8xlarge
}

void write_machine(const FakeMachine& machine, FakeTree& tree, Shown shown) {
  tree.set_instance_type(machine.type);
  add_pci(tree, "pci0000:00/0000:00:05.0", -1);
  tree.make_link("sys/class/net/eth0/device", "../../../devices/pci0000:00/0000:00:05.0");
  for (const FakeCard& card : machine.efa) add_efa(tree, card, machine.efa_gbits);
  for (const FakeDevice& device : machine.devices) {
    add_pci(tree, device.path, device.numa_node);
    if (shown == Shown::Driver) tree.add_neuron(device.number, machine.physical_cores, device.connected);
  }
}

Host host_of(const FakeMachine& machine, Shown shown) {
  FakeTree tree;
  write_machine(machine, tree, shown);
  return host_of(tree);
}

std::string neuron_ls_json(const FakeMachine& machine, Dialect dialect) {
  std::string text;
  const int cores = machine.physical_cores / machine.cores_per_logical;
  for (const FakeDevice& device : machine.devices) {
    const std::string address = address_of(device.path);
    text += text.empty() ? "[" : ",";
    text += R"({"neuron_device":)" + std::to_string(device.number);
    text += R"(,"bdf":")" + (dialect == Dialect::Old ? address.substr(5) : address);
    text += R"(","cpu_affinity":"0-31,64-95","numa_node":")" + std::to_string(device.numa_node);
    text += R"(","connected_to":)" + (device.connected.empty() ? "null" : "[" + device.connected + "]");
    text += R"(,"nc_count":)" + std::to_string(cores);
    if (machine.cores_per_logical > 1) text += R"(,"logical_neuroncore_config":2)";
    text += R"(,"memory_size":34359738368,"neuron_processes":[{"pid":7,"command":"python3 a.py"}])";
    if (dialect != Dialect::Old) text += R"(,"neuroncore_ids":[0,1])";
    if (dialect == Dialect::Newest) text += R"(,"instance_type":")" + machine.type + "\"";
    text += "}";
  }
  return text.empty() ? "" : text + "]";  // without a newline at its end
}

std::string neuron_ls_table(const FakeMachine& machine) {
  std::string text = "instance-type: " + machine.type + "\ninstance-id: i-0123456789abcdef0\n";
  if (machine.cores_per_logical > 1) text += "logical-neuroncore-config: 2\n";
  const std::string rule = "+--------+--------+--------+---------------+---------+--------+\n";
  text += rule;
  text += "| NEURON | NEURON | NEURON |   CONNECTED   |   PCI   |  PID   |\n";
  text += "| DEVICE | CORES  | MEMORY |    DEVICES    |   BDF   |        |\n" + rule;
  for (const FakeDevice& device : machine.devices) {
    text += "| " + std::to_string(device.number) + " | " +
            std::to_string(machine.physical_cores / machine.cores_per_logical) + " | 32 GB | " + device.connected +
            " | " + address_of(device.path).substr(5) + " | 711 |\n|        |        |        |      |       | 712 |\n";
    text += rule;
  }
  return text;
}

}  // namespace ccom
