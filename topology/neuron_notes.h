// SPDX-License-Identifier: Apache-2.0
//
// Room-private: sentences on Neuron devices that are not as the instance type has them.
#pragma once

#include <string>
#include <vector>

#include "topology/shapes.h"
#include "topology/topology.h"

namespace ccom {

// Devices as seen: their numbers, ascending, and links between them, by position among the numbers.
struct SeenGraph {
  std::vector<int> numbers;
  std::vector<Edge> edges;      // both ends report it; sorted, both directions
  std::vector<Edge> one_sided;  // the first end alone reports it
};

// What the graph lacks against the whole machine, and what is odd in it. `preset` may be nullptr.
std::vector<std::string> notes_on(const SeenGraph& graph, const Fabric* preset);

}  // namespace ccom
