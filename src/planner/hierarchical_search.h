// SPDX-License-Identifier: Apache-2.0
//
// Room-private: which programs over several hosts, memory inside and messages across, can run.
#pragma once

#include <optional>
#include <vector>

#include "algorithms/hierarchical.h"
#include "planner/planner.h"

namespace ccom {

// The ranks of each host, ascending.
HostRanks host_ranks(const Topology& topology);

// The hosts as ranks, one on each.
Topology hosts_alone(const Topology& topology);

// Sets of channels that tiles under way use in turn.
int lanes_across(size_t hosts);

// "hierarchical_sharded" and "hierarchical_leaders", as far as they serve the collective and differ; none where no host
// has two ranks, unless question.wire asks for blocks, or hosts are far apart: their tiles follow one another without
// waiting for what is on its way.
std::vector<Program> hierarchical_programs(const Topology& topology, const Question& question);

// "hierarchical_direct", under the same conditions.
std::optional<Program> direct_program(const Topology& topology, const Question& question);

}  // namespace ccom
