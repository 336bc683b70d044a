// SPDX-License-Identifier: Apache-2.0
//
// Where the devices and switches of a fabric stand in its picture, and which way a link takes there.
#pragma once

#include <string>
#include <vector>

#include "topology/topology.h"

namespace ccom {

// All lengths in pixels.
constexpr double kBoxWidth = 92;
constexpr double kBoxHeight = 46;

struct Point {
  double x = 0;
  double y = 0;
};

struct Layout {
  std::vector<Point> centers;  // by vertex: devices, then switches
  double width = 0;
  double height = 0;
};

// Tori and chains in rows, the layers of three dimensions one behind the other; all others on a circle around their
// switches.
Layout lay_out(const Fabric& fabric);

// SVG path data from box to box: straight, or around the edge of a torus.
std::string way_between(const Fabric& fabric, const Layout& layout, int a, int b);

}  // namespace ccom
