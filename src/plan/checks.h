// SPDX-License-Identifier: Apache-2.0
//
// The verifier's rules that need no run: 1 (ranges and lengths) and 4 (races).
#pragma once

#include <span>

#include "base/status.h"
#include "plan/dependencies.h"
#include "plan/plan.h"

namespace ccom {

// An InternalError that names the plan, the rank, the step and the rule. `step` may be one past the last.
Status defect(const Plan& plan, size_t step, const char* rule);

// Every step of one plan is well-formed.
Status check_steps(const Plan& plan);
// One plan per rank, by rank, for one call, every step well-formed.
Status check_shape(std::span<const Plan> plans);

// No races, and dependencies that say what the executor needs. Independent of how they were derived: finds the pairs of
// steps that touch a block again, with all blocks between two cuts as one, and looks for a path of dependencies.
Status check_order(const Plan& plan, const Dependencies& dependencies);

}  // namespace ccom
