// SPDX-License-Identifier: Apache-2.0
//
// Proves a program: that every rank's output holds what the collective promises, whatever the plans of its stages are.
//
// All ranks' memory is symbolic (value.h): input, output and banks of scratch, by blocks. The parts of several tiles
// run in order_of(), Host stages in one NodeWorld per host (races by vector clocks, banks shared with the calls
// before), messages in the verifier of plans (no deadlock, no race). What a stage leaves is what the next one finds. So
//
// 1. stages' groups are disjoint, their blocks and places exist, and slices cover the vector;
// 2. parts end: with the order in which each rank runs them no ranks wait for each other in a circle;
// 3. while messages of a tile are under way nobody touches the places that they read or write;
// 4. messages of tiles that share channels are posted all at once, so that they cannot get mixed up;
// 5. the first phase of a host's plan is the same whatever the first barrier will show of reach (node_plan.h);
// 6. every output block holds every contribution exactly once, completed once if it is a sum, the same expression on
//    every rank that has it; nothing else is written;
// 7. what a stage gives lies there in the type that the stage has it in, and results are of the call's type.
//
// Programs of one stage All are proved by verify() (plan/verify.h).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "plan/program.h"
#include "plan/value.h"

namespace ccom {

// Makes the plans of a program's stages; src/algorithms has them (stage_plans.h).
struct StagePlanSource {
  // Of member `member` of a group (All: rank `member`).
  std::function<Plan(const Program&, const Stage&, size_t group, int member, bool in_place)> messages;
  std::function<NodePlan(const Program&, const Stage&, size_t group, int member, bool in_place, std::span<const Reach>)>
      node;
};

// What a proof is for. Defaults: everything that a call may meet.
struct ProgramCase {
  // Which buffers of local ranks can be reached, in every Host stage: by rank modulo its length. Empty: nobody's.
  std::vector<Reach> reach{};
  // Which ranks call in place, by rank modulo its length. Empty: none.
  std::vector<bool> in_place{};
  size_t tiles = 1;       // of the call
  size_t node_tiles = 1;  // of every Host stage
  size_t calls = 1;       // in a row, on the same banks
};

struct ProgramReport {
  int max_roundings = 0;                 // on the longest path to a result
  int max_encodings = 0;                 // of those, as blocks with a scale
  SumOrder order = SumOrder::Canonical;  // the least of all results
};

// One case. An InternalError names the rank, the stage and the broken rule; a missing or doubled contribution is named.
Result<ProgramReport> verify_program(const Program& program, const StagePlanSource& source, const ProgramCase& what);

// The cases that production proves when it first compiles a program: every uniform reach and mixtures, in place, out of
// place and mixed, one tile and more than may be under way, calls in a row.
Result<ProgramReport> verify_program(const Program& program, const StagePlanSource& source);

// Rule 2 for the order in which each rank runs its parts (by rank): normally order_of() for all.
Status check_order(const Program& program, std::span<const std::vector<Part>> orders);

}  // namespace ccom
