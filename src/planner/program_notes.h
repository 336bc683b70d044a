// SPDX-License-Identifier: Apache-2.0
//
// Room-private: what explanations say about candidates that use memory inside hosts.
#pragma once

#include <string>

#include "planner/planner.h"
#include "planner/program_pricing.h"

namespace ccom {

// "node_two_shot; ordinary buffers: 3.1 us, 2 barriers, 5000 bytes; mapped: 1.2 us, 2 barriers, 2000 bytes (500 of
// other memory domains)"
std::string node_note(const Topology& topology, const Question& question, const Program& program);

// "inside 12.1 us, across 88.0 us, inside 4.2 us; 4 tiles": of each tile.
std::string stages_note(const Program& program, const ProgramPrice& priced);

}  // namespace ccom
