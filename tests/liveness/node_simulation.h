// SPDX-License-Identifier: Apache-2.0
//
// One random history of the ranks of a host under faults, in virtual time, on the production Board and NodeWatch.
#pragma once

#include "simulation.h"

namespace ccom {

// Two to eight ranks. To be forgiven: short stops, starvation of one rank or all for as long as it takes (where the
// kernel does not tell, as long as a stop), a machine that stood still. Faults: up to three ranks killed, which die up
// to 30 ms later, or stopped, beside a starved survivor. Asserted: no error without a fault; after one, within
// CCOM_DEAD_MS and two beats, an error that names only its ranks, and of the dead all; nobody is named early.
History simulate_node(uint64_t seed);

}  // namespace ccom
