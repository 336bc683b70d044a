// SPDX-License-Identifier: Apache-2.0
//
// Room-private: the Neuron devices of a machine, by whoever shows them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/topology.h"
#include "topology/sysfs_root.h"

namespace ccom {

struct NeuronFound {
  Fabric fabric;
  std::vector<NeuronDevice> devices = {};  // by place in the fabric; without NICs
  std::vector<std::string> notes = {};
  bool own_numbers = true;         // NeuronDevice::number is the machine's, not one that a container gave
  std::string instance_type = {};  // what was given, or else what neuron-ls says
};

// Asks in turn the driver's files, neuron-ls, and the preset of the instance type ("" if unknown); nothing if none of
// them knows of a device. A fabric whose graph is that of its preset or of a shape is numbered as they are.
std::optional<NeuronFound> discover_neuron(const SysfsRoot& tree, const std::string& instance_type,
                                           const NeuronHints& hints);

}  // namespace ccom
