// SPDX-License-Identifier: Apache-2.0
//
// Errors that say what every rank was doing.
#pragma once

#include <vector>

#include "base/status.h"
#include "observe/rank_activity.h"

namespace ccom {

// Whether an error is of the kind that leaves its reader asking where the ranks are: a timeout, a death, a mismatch, an
// abort, a departure.
bool is_about_ranks(const Status& error);
// Of ranks that are late or in another call.
bool is_of_late_ranks(const Status& error);

// The error with what the ranks do behind its message: "...; rank 3 is at train.py:214 (evaluate), not in a call since
// 12.4 s". As it is if no rank has made a call yet, or there is no memory or room for more text.
Status with_activities(const Status& error, std::vector<RankActivity> activities) noexcept;

}  // namespace ccom
