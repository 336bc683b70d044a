// SPDX-License-Identifier: Apache-2.0
//
// Whether a program combines contributions in the order of the ranks, with any grouping: what an operator that does not
// commute needs.
#pragma once

#include "plan/program.h"

namespace ccom {

// True only if every result is x0 op x1 op ... from left to right; false for programs that do not sum, and for some
// that keep the order all the same: plans of users are to be asked of the verifier (ProgramReport::keeps_order).
bool keeps_rank_order(const Program& program);

}  // namespace ccom
