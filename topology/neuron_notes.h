// SPDX-License-Identifier: Apache-2.0
//
// Room-private: notes about Neuron devices that differ from the instance type.
#pragma once

#include <string>
#include <vector>

#include "topology/shapes.h"
#include "topology/topology.h"

namespace ccom {

// Visible devices: their numbers, ascending, and the links between them, by position among the numbers.
struct SeenGraph {
  std::vector<int> numbers;
  std::vector<Edge> edges;      // reported by both ends; sorted, both directions
  std::vector<Edge> one_sided;  // reported by the first end only
};

// What the graph lacks compared with the whole machine, and inconsistencies. `preset` may be nullptr.
std::vector<std::string> notes_on(const SeenGraph& graph, const Fabric* preset);

}  // namespace ccom
