// SPDX-License-Identifier: Apache-2.0
//
// Calls with data that is checked: any lists of blocks, any layout of buffers. What a call must not touch is compared
// as well.
#pragma once

#include <vector>

#include "tests/node/node_crew.h"

namespace ccom {

// How calls run, in the terms of tests.
struct Ways {
  size_t one_shot_bytes = 4096;             // of a sum of one block
  std::vector<std::vector<Rank>> groups{};  // not empty: these sums are gathered and released
  std::vector<std::vector<Rank>> domains{};
  bool pulls = false;
  bool reads = false;
  bool streams = false;
  size_t tile_bytes = SIZE_MAX;
};
NodeChoice choice_of(const Ways& ways, const NodeTask& task, size_t unit_bytes);

// Known to all ranks. Data is float32, sums are exact.
struct TaskCase {
  NodeTask task{};
  Ways ways{};
  size_t count = 0;
  bool has_views = false;                                             // units lie apart, in any order
  std::vector<size_t> block_elements{};                               // with views
  std::vector<bool> in_place{}, input_in_arena{}, output_in_arena{};  // by rank; in place where the task allows it
};

// Makes the call as `rank` and checks all of its memory. number: of the call, different for each.
void run_case(NodeCrew& crew, int rank, const TaskCase& c, uint64_t number);
// All of them, one after another, on all ranks, with pauses here and there.
void run_cases(NodeCrew& crew, const std::vector<TaskCase>& cases);

}  // namespace ccom
