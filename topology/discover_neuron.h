// SPDX-License-Identifier: Apache-2.0
//
// Room-private: the Neuron devices of a machine, from any source.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/sysfs_root.h"
#include "topology/topology.h"

namespace ccom {

struct NeuronFound {
  Fabric fabric;
  std::vector<NeuronDevice> devices = {};  // by place in the fabric; without NICs
  std::vector<std::string> notes = {};
  bool own_numbers = true;         // NeuronDevice::number is the machine's, not a container's
  std::string instance_type = {};  // as given, or else from neuron-ls
};

// Tries the driver's files, neuron-ls, and the preset of the instance type ("" if unknown), in this order; nothing if
// none reports a device. A fabric equal to its preset or to a shape is numbered accordingly.
std::optional<NeuronFound> discover_neuron(const SysfsRoot& tree, const std::string& instance_type,
                                           const NeuronHints& hints);

}  // namespace ccom
