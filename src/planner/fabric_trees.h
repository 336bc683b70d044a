// SPDX-License-Identifier: Apache-2.0
//
// Room-private: prices on fabrics of what has no phases: trees, and everybody with everybody.
#pragma once

#include "planner/fabric_view.h"
#include "planner/pricing.h"
#include "topology/wires.h"

namespace ccom {

Price price_trees(const Topology& topology, const FabricView& view, const Question& question,
                  const std::vector<Tree>& trees);
// Everybody sends `each` bytes to everybody: how long the busiest kind of wire is busy, all of a kind alike.
double busiest_ns(const FabricView& view, const Wires& wires, double each);
Price price_pairwise(const Topology& topology, const FabricView& view, const Question& question);

}  // namespace ccom
