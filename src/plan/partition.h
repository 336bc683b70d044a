// SPDX-License-Identifier: Apache-2.0
//
// From blocks to elements: applied when a plan is bound to a call.
//
// A unit of `unit_elements` is cut into blocks of block_elements each; the last ones of a unit may be shorter or empty.
// Equal full blocks keep every run of scratch slots contiguous. Big blocks are rounded up to whole cache lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace ccom {

class Partition {
 public:
  Partition(size_t unit_elements, uint32_t blocks_per_unit, size_t element_bytes)
      : unit_elements_(unit_elements), blocks_per_unit_(blocks_per_unit) {
    block_elements_ = (unit_elements + blocks_per_unit - 1) / blocks_per_unit;
    const size_t line = kLineBytes / std::min(element_bytes, kLineBytes);
    if (blocks_per_unit > 1 && block_elements_ >= kRoundFromLines * line) {
      block_elements_ = (block_elements_ + line - 1) / line * line;
    }
  }

  // Of the first element of `block` in Input or Output, where units follow one another; in its unit.
  size_t offset(uint64_t block) const { return block / blocks_per_unit_ * unit_elements_ + within_unit(block); }
  size_t within_unit(uint64_t block) const {
    return std::min(block % blocks_per_unit_ * block_elements_, unit_elements_);
  }
  // In the blocks [block, block + count).
  size_t elements(uint64_t block, uint64_t count) const {
    const uint64_t end = block + count;
    return (end / blocks_per_unit_ - block / blocks_per_unit_) * unit_elements_ + within_unit(end) - within_unit(block);
  }
  size_t slot_offset(uint64_t slot) const { return slot * block_elements_; }

 private:
  static constexpr size_t kLineBytes = 64;
  static constexpr size_t kRoundFromLines = 64;  // 4 KiB: below that an even spread matters more than alignment

  size_t unit_elements_;
  uint64_t blocks_per_unit_;
  size_t block_elements_;
};

}  // namespace ccom
