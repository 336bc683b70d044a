// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "topology/topology.h"

namespace ccom {

// Human-readable: hosts, caches, NICs, devices with neighbours, ranks with places.
std::string to_text(const Topology& topology);
std::string to_text(const Host& host);
std::string to_text(const Fabric& fabric);

}  // namespace ccom
