// SPDX-License-Identifier: Apache-2.0
//
// Room-private: sources of Neuron device information: the driver's files and the output of neuron-ls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/neuron_ls.h"
#include "topology/sysfs_root.h"
#include "topology/topology.h"

namespace ccom {

// The devices below sys/devices/virtual/neuron_device, ascending.
std::vector<SeenDevice> read_driver(const SysfsRoot& tree);

// The output of neuron-ls stored in the root of a recorded tree.
std::optional<NeuronListing> read_listing(const SysfsRoot& tree);
// Runs neuron-ls if installed; falls back to the table if it has no JSON output. Failures are logged.
std::optional<NeuronListing> run_neuron_ls(const SysfsRoot& tree, const NeuronHints& hints);

}  // namespace ccom
