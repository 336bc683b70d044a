// SPDX-License-Identifier: Apache-2.0
//
// What a rank says whose time is up.
#pragma once

#include "liveness/monitor.h"

namespace ccom {

// Timeout: rank `self` waited for these. In a call that all ranks make (all_take_part) those that are not in it yet, on
// whichever host, are named and blamed instead, see Monitor::who_is_behind().
Status timeout_status(Monitor& monitor, Rank self, std::vector<Rank> ranks, bool all_take_part);

}  // namespace ccom
