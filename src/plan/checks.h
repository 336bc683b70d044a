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

// One plan per rank, by rank, for one call, every step well-formed.
Status check_shape(std::span<const Plan> plans);

// By transitive closure of the dependencies: O(steps^2 / 64) words.
Status check_races(const Plan& plan, const Dependencies& dependencies);

}  // namespace ccom
