// SPDX-License-Identifier: Apache-2.0
//
// Who sends to whom over one level, round by round: for what networks of several levels make of a pattern. Closed forms
// beside the bricks; tests compare them with the plans.
#pragma once

#include <functional>
#include <vector>

#include "algorithms/shape.h"

namespace ccom {

struct LevelRound {
  double bytes = 0;                             // that a member sends in all `times` of it
  std::function<uint32_t(uint32_t member)> to;  // among the group; itself: it sends nothing
  double times = 1;
};

// Of a reduce-scatter of n bytes, which an allgather mirrors, or of an allreduce core. `members` of each group. None:
// everybody sends to everybody (Direct, OneShot), or along the dimensions of a torus.
std::vector<LevelRound> level_rounds(const Level& level, uint32_t members, double n);

// Of an alltoall of n bytes of each rank by Bruck's rounds, and by Bine's.
std::vector<LevelRound> bruck_rounds(uint32_t ranks, double n);
std::vector<LevelRound> bine_alltoall_rounds(uint32_t ranks, double n);

}  // namespace ccom
