// SPDX-License-Identifier: Apache-2.0
//
// Room-private: how the ranks of a host run a stage through its memory.
#pragma once

#include "planner/planner.h"

namespace ccom {

// A host of a topology as a machine of its own, with its share of the processors that it is not alone on.
Topology host_alone(const Topology& topology, int host);

// Of a Host stage of a program. Where hosts differ: what serves all of them.
NodeChoice node_choice(const Topology& topology, const Question& question, const Program& program, const Stage& stage);

}  // namespace ccom
