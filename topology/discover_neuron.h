// SPDX-License-Identifier: Apache-2.0
//
// Room-private: Neuron devices as the kernel driver shows them.
#pragma once

#include <optional>
#include <string>

#include "topology/topology.h"
#include "topology/tree.h"

namespace ccom {

// The devices under sys/devices/virtual/neuron_device, none if there are none. `instance_type` ("" if unknown) gives
// speeds and cores, and all of the links where the driver keeps them from us.
std::optional<Fabric> discover_neuron(const Tree& tree, const std::string& instance_type);

}  // namespace ccom
