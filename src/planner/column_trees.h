// SPDX-License-Identifier: Apache-2.0
//
// Trees of rooted collectives for long data on hosts with an imposed fabric: every device's way to the other hosts
// works, and every link between the devices.
//
// A column is a device of each host. What goes from host to host goes within its column; on the root's host, and on any
// host that it has come to, it goes from device to device over links.
#pragma once

#include <vector>

#include "plan/shape.h"
#include "planner/machine_view.h"

namespace ccom {

// Broadcast and Reduce: a share of the vector for each column, or two of them that exchange inner hosts and leaves
// (double_tree), so that a host sends and receives each share once. Within a host a share runs along a Hamiltonian
// cycle of the devices, in both directions of as many as are edge-disjoint: what a device sends and receives is even on
// all of its links. Where the outermost dimension of a torus is slower than the others, see even_trees.h. None: the
// devices have no such cycle.
std::vector<Tree> column_trees(const MachineView& view, Rank root, Collective collective);

// Gather and Scatter: all ranks of a column hang below its device on the root's host, and those below the root in
// branches that are as even as links allow. By position. None: not all devices are joined.
std::vector<Tree> column_gather_tree(const MachineView& view, Rank root);

}  // namespace ccom
