// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a host say of their parts in a v-form, each in memory of its own that the others can read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "node/layout.h"

namespace ccom {

// Of a rank, by the other rank, in elements: how many it sends, how many it expects, and where those that it sends
// begin in its input.
struct PartLists {
  std::span<const size_t> sent, received, sent_at;
};

// Barriers are those of FlagBarrier. Belongs to one thread at a time.
class PartCounts {
 public:
  PartCounts(std::byte* region, const NodeLayout& layout, Rank local_rank)
      : region_(region), layout_(layout), own_(local_rank) {}

  // To be read after that barrier, before which it is called, and until this rank arrives at the second one after it.
  void show(uint32_t barrier, const PartLists& lists);
  // Every rank sends so many to each and expects as many.
  void show_equal(uint32_t barrier, size_t count) {
    uint64_t* const bank = bank_of(own_, barrier);
    bank[0] = barrier;
    bank[1] = count;
  }

  // What a rank has shown at that barrier with show(); no rank's lists may be looked at that has not.
  PartLists of(Rank local_rank, uint32_t barrier) const;
  // Of each rank what it sends to each, then what it expects of each; nothing if one has shown nothing there.
  std::vector<uint64_t> claims(uint32_t barrier) const;

 private:
  static constexpr uint64_t kListed = UINT64_MAX;

  size_t ranks() const { return static_cast<size_t>(layout_.ranks); }
  uint64_t* bank_of(Rank local_rank, uint32_t barrier) const {
    return reinterpret_cast<uint64_t*>(region_ + layout_.block_offset(local_rank) +
                                       layout_.counts_offset(barrier % kMeetBanks));
  }

  std::byte* const region_;
  const NodeLayout layout_;
  const Rank own_;
};

}  // namespace ccom
