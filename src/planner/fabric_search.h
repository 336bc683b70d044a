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
  MessageAlgorithm algorithm;
  std::string why_not;  // "" if it can run
};

// Of every collective but AllToAll, SendReceive and the ones by rank with a root (Gather, Scatter).
std::vector<Possible> fabric_algorithms(const Topology& topology, const FabricView& view, const Question& question);

// How often data may be cut to flow through an algorithm, windows of a staged one, chunks of a tree: 1, 2, 4, ...
std::vector<int> possible_counts(const MessageAlgorithm& algorithm, const Settings& settings, const Question& question);
void set_count(MessageAlgorithm& algorithm, int count);

}  // namespace ccom
