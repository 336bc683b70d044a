// SPDX-License-Identifier: Apache-2.0
//
// Room-private: programs that the user gives (CCOM_PLAN) instead of those that the search would choose.
#pragma once

#include <optional>

#include "planner/planner.h"

namespace ccom {

// The program of a plan file that serves the call, as the only candidate; nothing if there is none. NotSupported if it
// does not fit the hosts.
Result<std::optional<Choice>> choose_from_plans(const Topology& topology, const Settings& settings,
                                                const Question& question);

// Channels between two ranks that programs of plan files use; at least 1.
int channels_of_plans(const Settings& settings);

}  // namespace ccom
