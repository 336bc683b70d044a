// SPDX-License-Identifier: Apache-2.0
//
// What a group of a Host stage takes for one tile of a program. Pure; for the planner and the simulator.
#pragma once

#include "algorithms/node_cost.h"
#include "plan/program.h"

namespace ccom {

struct HostStageCost {
  double time_ns = 0;
  NodeTraffic most{};              // of the rank that loads and stores most
  std::vector<double> first_ns{};  // by member: node_first_ns(); none of one that copies
};

// The ranks of a group in a tile whose blocks have `block_bytes`, one of `tiles`. `reach`: that all ranks have, as far
// as the stage's choice makes use of it.
HostStageCost host_stage_cost(const Program& program, const Stage& stage, size_t group, size_t block_bytes,
                              size_t tiles, const Reach& reach, const NodeMachine& machine);

// The same of a task, and of one of the ways to run it.
HostStageCost node_task_cost(const NodeTask& task, const NodeChoice& way, size_t unit_bytes, size_t tiles,
                             const Reach& reach, const NodeMachine& machine);

}  // namespace ccom
