// SPDX-License-Identifier: Apache-2.0
//
// What a message occupies on its way, by name.
#pragma once

#include <string>
#include <vector>

#include "topology/wires.h"

namespace ccom {

inline std::vector<std::string> way(const Topology& topology, Rank a, Rank b) {
  const Wires wires(topology);
  std::vector<uint32_t> path;
  wires.path(a, b, path);
  std::vector<std::string> names;
  for (const uint32_t wire : path) names.push_back(wires.name(wire));
  return names;
}

}  // namespace ccom
