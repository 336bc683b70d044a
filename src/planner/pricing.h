// SPDX-License-Identifier: Apache-2.0
//
// The time that a program takes on a topology, by its algorithms' closed forms.
#pragma once

#include "algorithms/cost.h"
#include "algorithms/node.h"
#include "planner/node_cost.h"
#include "planner/planner.h"

namespace ccom {

struct Price {
  Cost cost;
  double time_ns = 0;
  int roundings = 0;
};

// What the first rank of a node does in a call, if every rank's buffers can be reached alike.
struct NodeOutlook {
  NodeScheme scheme = NodeScheme::Direct;
  NodeTraffic traffic;
};
NodeOutlook look_at_node(const Topology& topology, const Question& question, const Reach& reach);

Price price(const Topology& topology, const Question& question, const MessageAlgorithm& algorithm);
Price price(const Topology& topology, const Question& question, const Program& program);

}  // namespace ccom
