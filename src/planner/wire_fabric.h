// SPDX-License-Identifier: Apache-2.0
//
// Room-private: the wires of a topology as the links of the lint (plan/lint.h).
#pragma once

#include "plan/lint.h"
#include "topology/wires.h"

namespace ccom {

// Weights are nanoseconds per byte. `wires` outlives it.
LintFabric wire_fabric(const Wires& wires);

}  // namespace ccom
