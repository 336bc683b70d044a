// SPDX-License-Identifier: Apache-2.0
//
// Wrong plans, made from right ones by one change each: to a step, to two steps of a rank, or to both ends of a
// message.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace ccom {

struct Mutation {
  const char* operation;  // "drop", "swap", ...
  std::string what;       // which step of which rank
};

// Calls fn with every mutant of the steps of `rank`; where a change has a choice (a peer, a place), `random` makes it.
// The plans are valid during the call.
void for_each_mutant(const std::vector<Plan>& plans, Rank rank, std::mt19937_64& random,
                     const std::function<void(const Mutation&, const std::vector<Plan>&)>& fn);

}  // namespace ccom
