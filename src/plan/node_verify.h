// SPDX-License-Identifier: Apache-2.0
//
// Proves a collective's node plans, all ranks together, over several tiles and calls in a row.
//
// 1. Steps stay within buffers; ranks write only what is theirs, or an Output that is let (a target by the plan).
// 2. Everybody arrives at equally many barriers.
// 3. No race: of two accesses to a cell by different ranks, one of them writing, one is ordered before the other by
//    barriers. Followed with vector clocks, so waiting for a part of the ranks is proved as well as waiting for all.
//    Tiles share the banks of staging memory with all calls before them.
// 4. Nobody returns while others may touch its buffers: the rank's return is ordered after all their accesses.
// 5. Each output unit holds each contribution exactly once (fingerprints as in verify.h), completed once where the task
//    completes. The lines in which ranks announce their arrival have two banks as well: none is written again before
//    everybody has read it, where all do.
// 6. Every rank's expression for a block is the same: bitwise equal results.
#pragma once

#include <map>
#include <span>

#include "base/status.h"
#include "plan/node_plan.h"

namespace ccom {

struct NodeReport {
  int max_roundings = 0;
  size_t barriers = 0;  // of the first call
  // Of its results, by block: hashes of what is computed and how. Plans with equal ones give equal bits.
  std::map<uint32_t, uint64_t> expressions;
};

// One collective call: its task, plans by local rank, and into how many tiles it is cut.
struct NodeCallPlans {
  NodeTask task;
  std::span<const NodePlan> plans;
  size_t tiles = 1;
};

// The calls run one after another on the same staging memory.
Result<NodeReport> verify_node(std::span<const NodeCallPlans> calls);

}  // namespace ccom
