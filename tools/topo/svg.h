// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "topology/topology.h"

namespace ccom {

// A picture, as an SVG document that needs nothing else: devices where they are in the shape, with their ranks and
// cards, links coloured by bandwidth. Of a host its imposed fabric, else its Neuron devices, and then dashed what the
// instance type has and the host lacks. Of a topology the first hosts. A fabric of more than 1024 devices is named
// only.
std::string to_svg(const Topology& topology);
std::string to_svg(const Host& host);
std::string to_svg(const Fabric& fabric);

}  // namespace ccom
