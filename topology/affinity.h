// SPDX-License-Identifier: Apache-2.0
//
// Room-private: which network cards are near which Neuron devices.
#pragma once

#include "topology/topology.h"
#include "topology/sysfs_root.h"

namespace ccom {

// Fills NeuronDevice::nics, and what else the PCI bus and the preset of Host::instance_type tell of the devices. EFA
// cards if there are any, else all. By, in this order: the card that the preset knows as the device's own; the longest
// common way from the root of the PCI bus; a common bus; a common NUMA node; and if nothing is known in turn by number,
// which a note says. `own_numbers`: the numbers of the devices are the machine's. Gives a fabric that is not the whole
// machine in its order the uplinks that follow from the cards.
void find_nearest_nics(const SysfsRoot& tree, bool own_numbers, Host& host);

}  // namespace ccom
