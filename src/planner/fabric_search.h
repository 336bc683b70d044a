// SPDX-License-Identifier: Apache-2.0
//
// Which algorithms can run on hosts with an imposed fabric.
#pragma once

#include <string>
#include <vector>

#include "planner/fabric_view.h"
#include "planner/planner.h"

namespace ccom {

struct Possible {
  Recipe recipe;
  std::string why_not;  // "" if it can run
};

// For collectives without a root and AllToAll. Windows are 1; add_windows() tries more.
std::vector<Possible> fabric_recipes(const Topology& topology, const FabricView& view, Collective collective);

// How many windows a staged recipe may have within so many channels between two ranks: 1, 2, 4, ...
std::vector<int> possible_windows(const Staged& shape, int most_channels);

}  // namespace ccom
