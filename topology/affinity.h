// SPDX-License-Identifier: Apache-2.0
//
// Room-private: determines the network cards nearest to each Neuron device.
#pragma once

#include "topology/sysfs_root.h"
#include "topology/topology.h"

namespace ccom {

// Fills NeuronDevice::nics and other data that the PCI bus and the preset of Host::instance_type provide. Uses EFA
// cards if there are any, else all. Criteria, in this order: the device's own card in the preset; the longest common
// path from the root of the PCI bus; a common bus; a common NUMA node; otherwise round-robin by number, with a note.
// `own_numbers`: the device numbers are the machine's. A fabric that is not the whole machine in its order gets the
// uplinks that follow from the cards.
void find_nearest_nics(const SysfsRoot& tree, bool own_numbers, Host& host);

}  // namespace ccom
