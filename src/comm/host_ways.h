// SPDX-License-Identifier: Apache-2.0
//
// The ways that a call's stages inside a host may take, and what this communicator's calls have found out about them,
// as JSON: the same on all ranks of a host.
#pragma once

#include <string>

#include "base/measured_costs.h"
#include "comm/request.h"
#include "node/shm_collectives.h"
#include "runner/bound_program.h"

namespace ccom {

// Fields of an object, each after a comma; empty if no stage of the program runs through a host's memory. Calls count
// that have the request's collective, type, count and root, whatever their operator and buffers; of v-forms (is_v)
// those whose longest part is of the count's power of two.
std::string host_ways_json(const BoundProgram& program, const Request& request, bool is_v, const ShmCollectives& host,
                           const MeasuredCosts& costs);

}  // namespace ccom
