// SPDX-License-Identifier: Apache-2.0
#include "planner/wire_fabric.h"

namespace ccom {

LintFabric wire_fabric(const Wires& wires) {
  LintFabric fabric{.links = wires.count(),
                    .path = [&wires, path = std::vector<uint32_t>()](Rank from, Rank to) mutable {
                      path.clear();
                      wires.path(from, to, path);
                      return std::span<const uint32_t>(path);
                    }};
  for (uint32_t wire = 0; wire < wires.count(); ++wire)
    fabric.weights.push_back(1e9 / wires[wire].speed.bytes_per_second);
  return fabric;
}

}  // namespace ccom
