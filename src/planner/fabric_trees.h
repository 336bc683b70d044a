// SPDX-License-Identifier: Apache-2.0
//
// Room-private: prices on fabrics of what has no phases: trees, and everybody with everybody.
#pragma once

#include "planner/fabric_view.h"
#include "planner/pricing.h"

namespace ccom {

Price price_trees(const Topology& topology, const FabricView& view, const Question& question,
                  const std::vector<Tree>& trees);
Price price_pairwise(const Topology& topology, const FabricView& view, const Question& question);

}  // namespace ccom
