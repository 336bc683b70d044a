// SPDX-License-Identifier: Apache-2.0
//
// Plans that are one plan turned: rank r's is rank 0's with peers and blocks of data moved on, and with names of its
// own for its scratch slots (verify.h).
#pragma once

#include "base/status.h"
#include "plan/plan.h"

namespace ccom {

// Whether rank 0's plan is of a kind that can be turned.
bool can_turn(const Plan& zero);
// Whether rank r's plan is rank 0's, turned.
Status check_turned(const Plan& zero, const Plan& plan, Rank r);

}  // namespace ccom
