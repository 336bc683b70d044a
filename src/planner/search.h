// SPDX-License-Identifier: Apache-2.0
//
// Room-private: all candidates of a question with their prices, and which one is chosen.
#pragma once

#include "planner/planner.h"

namespace ccom {

// Members of a group that exchange blocks directly at a time: more would be many short messages.
inline constexpr int kMostDirect = 16;

// Without the user's plans. flows: that share a host's network at the same time; 0: what its ranks make of it.
Result<Choice> search(const Topology& topology, const Settings& settings, const Question& question, double flows = 0);

}  // namespace ccom
