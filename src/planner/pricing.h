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
  int roundings = 0;
};

Price price(const Topology& topology, const Question& question, const MessageAlgorithm& algorithm);
Price price(const Topology& topology, const Question& question, const Program& program);

}  // namespace ccom
