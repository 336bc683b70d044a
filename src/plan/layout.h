// SPDX-License-Identifier: Apache-2.0
//
// Where a plan's blocks lie in scratch, and how long its runs are, once units have a length.
#pragma once

#include <vector>

#include "plan/partition.h"
#include "plan/plan.h"

namespace ccom {

class BlockLayout {
 public:
  // `plan` outlives it. Of a plan with an order it takes 8 bytes per position.
  BlockLayout(const Plan& plan, const Partition& partition);

  // In a step's run: what it says of its blocks, or positions.
  size_t elements(uint32_t block, uint32_t count) const {
    return begins_.empty() ? partition_.elements(block, count) : begins_[block + count] - begins_[block];
  }
  // Of the first element of a slot, which may be one past the last.
  size_t slot_offset(uint32_t slot) const;

 private:
  const Plan& plan_;
  Partition partition_;
  std::vector<size_t> begins_;      // by position, and of what comes after the last one
  std::vector<size_t> stretch_at_;  // by stretch
};

}  // namespace ccom
