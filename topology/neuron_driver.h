// SPDX-License-Identifier: Apache-2.0
//
// Room-private: where Neuron devices are seen: in the driver's files, or in what neuron-ls prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/neuron_ls.h"
#include "topology/topology.h"
#include "topology/sysfs_root.h"

namespace ccom {

// The devices below sys/devices/virtual/neuron_device, ascending.
std::vector<SeenDevice> read_driver(const SysfsRoot& tree);

// What neuron-ls has printed into the root of a recorded tree.
std::optional<NeuronListing> read_listing(const SysfsRoot& tree);
// Runs it, if it is there; asks again for the table if it knows no JSON. What goes wrong is logged.
std::optional<NeuronListing> run_neuron_ls(const SysfsRoot& tree, const NeuronHints& hints);

}  // namespace ccom
