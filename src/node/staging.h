// SPDX-License-Identifier: Apache-2.0
//
// Staging memory of the ranks of a host: banks that the tiles of all calls use in turn.
#pragma once

#include "memory/shared_segment.h"
#include "node/layout.h"
#include "plan/node_plan.h"

namespace ccom {

class Staging {
 public:
  // The segment outlives it. `offset`: of the node's region in the segment.
  Staging(SharedSegment& segment, size_t offset, const NodeLayout& layout, Rank local_rank);

  // Takes memory for what this rank writes: by every rank, before its first tile is staged.
  Status reserve(bool has_partial_sums);
  // The same for so many bytes of what this rank shows in mails of more than kAheadMailBytes.
  Status reserve_long_mails(size_t size_bytes);
  // Of the bank that a tile of the present call uses.
  std::byte* address(const Operand& operand, size_t tile) const {
    const size_t bank = (tiles_before_ + tile) % kNodeBanks;
    std::byte* const block = region_ + layout_.block_offset(operand.owner);
    switch (operand.area) {
      case Area::Stage: return block + layout_.stage_offset(bank);
      case Area::Partial: return block + layout_.partial_offset(bank);
      default: return block + layout_.result_offset(bank);
    }
  }
  // A call of so many tiles has ended.
  void advance(size_t tiles) { tiles_before_ += tiles; }

  const NodeLayout& layout() const { return layout_; }
  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  Status take(size_t begin, size_t end);

  SharedSegment& segment_;
  std::byte* const region_;
  const size_t block_;  // of this rank, in the segment
  const NodeLayout layout_;
  size_t tiles_before_ = 0;  // staged by all calls so far
  bool has_stage_ = false, has_partial_ = false, has_long_mails_ = false;
  uint64_t memory_bytes_ = 0;
};

}  // namespace ccom
