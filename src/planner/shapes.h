// SPDX-License-Identifier: Apache-2.0
//
// From a topology to shapes: the only code that knows both.
#pragma once

#include <optional>

#include "algorithms/shape.h"
#include "planner/machine_view.h"

namespace ccom {

// Levels that follow the machine: cores of a device, devices of a host (by the imposed fabric's shape), then hosts with
// `across`. Trivial levels are left out. nullopt if the fabric's shape, as far as ranks occupy it, has no such
// structure.
std::optional<Staged> machine_levels(const MachineView& view, Pattern across);

// Levels of plain hosts in racks that have equally many, several: cores of a host, hosts of a rack, racks. Everybody
// with everybody, or in halves where they are many. nullopt: no such racks.
std::optional<Staged> rack_levels(const MachineView& view);

// The most nearly square grid over all ranks, in rank order.
Level square_torus(int nranks);

// Ranks in order, but those of one rack side by side, host by host: for patterns whose neighbours in a list should be
// near one another.
std::vector<Rank> ranks_by_rack(const Topology& topology);

// Breadth-first tree from `root` over existing links, node-mates first; hosts hang together by their lowest ranks,
// those of a rack below one of them. Chunks 1.
Tree machine_tree(const Topology& topology, Rank root);

}  // namespace ccom
