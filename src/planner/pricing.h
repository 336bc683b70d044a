// SPDX-License-Identifier: Apache-2.0
//
// The time that a program takes on a topology, by its algorithms' closed forms.
#pragma once

#include "algorithms/cost.h"
#include "planner/planner.h"

namespace ccom {

struct Price {
  Cost cost;
  double time_ns = 0;
  TimeParts parts = {};
  int roundings = 0;
};

// flows: that share a host's network at the same time; 0: as many as it has ranks.
Price price(const Topology& topology, const Question& question, const MessageAlgorithm& algorithm, double flows = 0);
// The same for any algorithm, but for Blocks, by the steps of all ranks; 0 if they do not fit each other.
Price price_by_steps(const Topology& topology, const Question& question, const MessageAlgorithm& algorithm,
                     double flows = 0);
// Of messages between hosts that cost a rank so much.
Price price_across(const Topology& hosts, const Cost& cost, double flows);
Price price(const Topology& topology, const Question& question, const Program& program);

}  // namespace ccom
