// SPDX-License-Identifier: Apache-2.0
//
// Outcomes as a table or as JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/sim/cases.h"

namespace ccom::simtool {

std::string table_head();
std::string table_row(const Topology& topology, const Outcome& outcome);
// The median and the worst of the runs with noise, if there were some.
std::string noise_line(const Outcome& outcome);
// Where the time of the rank that ended last went, a line for each stage; nothing for a program of one stage.
std::string stage_table(const Outcome& outcome);
// The `most` busiest wires of an outcome, and what all wires of a kind did together.
std::string wire_table(const Topology& topology, const Outcome& outcome, size_t most);
std::string to_json(const Topology& topology, const Outcome& outcome);  // one line

}  // namespace ccom::simtool
