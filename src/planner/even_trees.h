// SPDX-License-Identifier: Apache-2.0
//
// Room-private: trees between devices that are joined by links of different speeds. In each tree one
// device after the other hangs at the link that trees so far use least for its speed, and near the top: all links are
// as busy as each other, the root's too, and no way is long.
#pragma once

#include <vector>

#include "plan/shape.h"
#include "planner/machine_view.h"

namespace ccom {

// `hosts`: of each tree between hosts, each one's parent; the root's has -1. On several hosts each device is the one
// that a share comes to in as many trees. None: not all devices are joined.
std::vector<Tree> even_trees(const MachineView& view, Rank root, const std::vector<std::vector<Rank>>& hosts);

}  // namespace ccom
