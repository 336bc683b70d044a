// SPDX-License-Identifier: Apache-2.0
//
// In which order a program combines contributions: what an operator that does not commute needs, and what decides about
// the bits of sums.
#pragma once

#include "plan/program.h"
#include "plan/value.h"

namespace ccom {

// Of every result of a program that sums; Any for others, and for some that keep an order all the same: plans of users
// are to be asked of the verifier (ProgramReport::order).
SumOrder sum_order(const Program& program);

}  // namespace ccom
