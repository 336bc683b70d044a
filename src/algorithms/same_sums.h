// SPDX-License-Identifier: Apache-2.0
//
// Whether two programs give a sum the same bits, wherever its operands lie in the call.
#pragma once

#include "plan/program.h"

namespace ccom {

// Of programs for the same ranks and collective: true only if every element of a result is one expression of the ranks'
// contributions, the same in both, whatever its place in the vector or unit. What is not known is no.
bool sums_alike(const Program& a, const Program& b);

}  // namespace ccom
