// SPDX-License-Identifier: Apache-2.0
//
// Room-private: PCI bus addresses and distances.
#pragma once

#include <string>
#include <string_view>

#include "topology/sysfs_root.h"

namespace ccom {

// "0000:59:00.0" for it, "0:59:00.0" and "59:00.0", in upper or lower case; "" if it is not an address.
std::string normalised_pci(std::string_view text);

// "0000:59", the bus of a normalised address.
std::string_view bus_of(std::string_view pci);

// The device's path: "pci0000:50/0000:50:01.0/0000:51:00.0/0000:59:00.0", from its link in sys/bus/pci/devices; "" if
// there is none.
std::string pci_path(const SysfsRoot& tree, const std::string& pci);

// The number of bridges that two such paths share from the root. More means nearer; 0 also if one is unknown.
int shared_bridges(std::string_view a, std::string_view b);

}  // namespace ccom
