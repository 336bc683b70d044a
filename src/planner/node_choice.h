// SPDX-License-Identifier: Apache-2.0
//
// Room-private: how the ranks of a host run a stage through its memory.
#pragma once

#include "planner/planner.h"

namespace ccom {

// Of a Host stage of a program. Where hosts differ: what serves all of them.
NodeChoice node_choice(const Topology& topology, const Question& question, const Program& program, const Stage& stage);

}  // namespace ccom
