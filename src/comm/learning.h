// SPDX-License-Identifier: Apache-2.0
//
// Between what calls find out about their ways (node/call_choices.h) and what is kept of it (topology/learned_ways.h).
#pragma once

#include <span>
#include <string>

#include "node/call_choices.h"
#include "topology/learned_ways.h"
#include "topology/topology.h"

namespace ccom {

// "ordinary", if no rank's buffers are mapped by others, or "mapped " with a number that stands for those that are.
std::string buffers_text(uint64_t buffers);

// Who makes the calls: the ranks of a host, and the processors that they have together.
struct HostRanks {
  int ranks = 0, cpus = 0;
};
HostRanks ranks_on(const Topology& topology, int host);

// What is to be kept.
LearnedWays learned_ways(std::span<const CallChoices::Found> found, HostRanks of, const std::string& processor);

// Calls begin with the way that `known` says; with the expected one where it knows none, or one that does not exist
// here, which is logged if `logs`. known: outlives it.
CallChoices::Expect expected_of(const LearnedWays& known, HostRanks of, bool logs, CallChoices::Expect expected);

}  // namespace ccom
