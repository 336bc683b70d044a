// SPDX-License-Identifier: Apache-2.0
//
// A simulation as pictures: a timeline for chrome://tracing or Perfetto, and a heat map of wires over time.
#pragma once

#include <string>

#include "sim/simulator.h"

namespace ccom::simtool {

// The Trace Event Format's JSON: a process per host, a thread per traced rank, a bar per step or stage in
// its host.
std::string chrome_trace(const Topology& topology, const Program& program, const SimReport& report);

// SVG: a row per wire that was used, the busiest `most_rows`, in the order of their numbers; time from left to right;
// the darker, the longer the wire was busy in that stretch. Needs SimReport::intervals.
// Times stand above. The title is plain text without <, > and &.
std::string heat_map(const Topology& topology, const SimReport& report, const std::string& title, size_t most_rows);

}  // namespace ccom::simtool
