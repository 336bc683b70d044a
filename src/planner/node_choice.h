// SPDX-License-Identifier: Apache-2.0
//
// How a call runs through the memory of the one host that all ranks are on. Pure.
#pragma once

#include "planner/planner.h"

namespace ccom {

NodeChoice node_choice(const Topology& topology, const Question& question);

}  // namespace ccom
