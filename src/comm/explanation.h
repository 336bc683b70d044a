// SPDX-License-Identifier: Apache-2.0
//
// What would be done in a call, and why, as JSON (planner/explain.cc).
#pragma once

#include <functional>
#include <string>

#include "comm/request.h"
#include "planner/planner.h"
#include "topology/topology.h"

namespace ccom {

// Answers a question; may round its size up first.
using Chooser = std::function<Result<Choice>(Question& question)>;

// Of a question on a topology. most_steps: for analyze(). more: fields to add, each after a comma. in_memory: of a
// v-form (is_v), that ranks compare its counts in the call itself, and exchange parts as the plain form does units.
// Others begin with an allgather of two words per rank; the planner is not asked about gather, scatter and alltoall:
// their parts go straight from rank to rank, or to everybody by an allgather where not all ranks are linked.
Result<std::string> explanation(const Topology& topology, const Question& question, const Chooser& chooser,
                                size_t most_steps, bool in_memory, const std::string& more = {});

// Of a call on a machine that need not exist, by what `request` says of collective, count, type and root. is_v: the
// v-form, whose parts have request.count elements on average. ConfigError for a fabric that is in parts; NotSupported
// where no algorithm can run.
Result<std::string> explain_offline(const Topology& topology, const Request& request, bool is_v);

}  // namespace ccom
