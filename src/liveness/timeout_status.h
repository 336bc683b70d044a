// SPDX-License-Identifier: Apache-2.0
//
// The error status of a wait that has reached its deadline.
#pragma once

#include "liveness/monitor.h"

namespace ccom {

// A Timeout of rank `self`, which waited for `ranks`. In a collective call (`collective`) the ranks of any host that
// have not begun it are named and blamed instead, see Monitor::find_stragglers().
Status timeout_status(Monitor& monitor, Rank self, std::vector<Rank> ranks, bool collective);

}  // namespace ccom
