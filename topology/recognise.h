// SPDX-License-Identifier: Apache-2.0
//
// Room-private: recognises the shape of a graph. Containers renumber devices and drivers list neighbours in any order,
// so a torus is recognised by its links, not its numbers.
#pragma once

#include <vector>

#include "topology/shapes.h"
#include "topology/topology.h"

namespace ccom {

struct Recognised {
  Fabric::Shape shape = Fabric::Shape::Other;
  std::vector<int> dims = {};
  std::vector<int> order;  // order[place] = device there; 0, 1, 2, ... if the numbers match, and for Other
};

// The first of chain, ring, full and the tori that equals the graph, preferring its own numbers. `edges` must be sorted
// and contain both directions. The search is bounded, far beyond tori of 256 devices.
Recognised recognise(int devices, const std::vector<Edge>& edges);

// The places of `shape` whose graph is `edges` after renumbering, as Recognised::order; empty if there are none.
std::vector<int> match(int devices, const std::vector<Edge>& edges, const std::vector<Edge>& shape);

// Whether every device is reachable from every other.
bool is_connected(int devices, const std::vector<Edge>& edges);

}  // namespace ccom
