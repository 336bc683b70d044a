// SPDX-License-Identifier: Apache-2.0
//
// Room-private: which shape is this graph? Containers number devices anew and drivers list neighbours in any order, so
// a torus is known by its links and not by its numbers.
#pragma once

#include <vector>

#include "topology/shapes.h"
#include "topology/topology.h"

namespace ccom {

struct Recognised {
  Fabric::Shape shape = Fabric::Shape::Other;
  std::vector<int> dims = {};
  std::vector<int> order;  // order[place] = device that stands there; 0, 1, 2, ... where the numbers fit, and for Other
};

// The first of chain, ring, full and the tori that is the graph, by its own numbers if they fit. `edges` are sorted and
// hold both directions. The search gives up after a bounded number of trials, long beyond tori of 256 devices.
Recognised recognise(int devices, const std::vector<Edge>& edges);

// The places of `shape` whose graph is `edges` after renumbering, as Recognised::order; empty if there are none.
std::vector<int> match(int devices, const std::vector<Edge>& edges, const std::vector<Edge>& shape);

// Is there a way from every device to every other?
bool is_connected(int devices, const std::vector<Edge>& edges);

}  // namespace ccom
