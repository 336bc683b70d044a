// SPDX-License-Identifier: Apache-2.0
//
// What lies where in the memory that the ranks of a node share: a block per rank, page-aligned, written by that rank
// alone (but for the count of sleepers).
//
//   line[2]        arrivals, used in turn: number of the meet, the call's hash, up to 48 bytes of payload
//   control        who sleeps until this rank arrives; whether it has left
//   descriptor[2]  the calls that the lines belong to, for error texts
//   mail[2]        payload of small calls that does not fit into a line
//   stage, partial, result    two banks each, for the tiles of larger calls; memory is taken when first used
//
// All zero is the initial state. Nothing read from here can lead outside of it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "plan/node_plan.h"

namespace ccom {

inline constexpr size_t kLinePayloadBytes = 48;
inline constexpr size_t kMailBytes = size_t{8} << 10;
inline constexpr size_t kNodePageBytes = 4096;

// One coherence transfer carries everything that a tiny call says.
struct alignas(64) FlagLine {
  std::atomic<uint64_t> word;  // number of the meet << 32 | half of the call's hash; written last
  uint64_t hash;
  std::byte payload[kLinePayloadBytes];
};
static_assert(sizeof(FlagLine) == 64 && std::atomic<uint64_t>::is_always_lock_free);

struct RankBlock {
  alignas(128) FlagLine line[2];
  alignas(128) std::atomic<uint32_t> sleepers;  // waiting in the kernel for this rank's next arrival
  alignas(128) std::atomic<uint32_t> has_left;  // touches nobody's buffers any more
  alignas(128) std::array<uint64_t, 8> descriptor[2];
  alignas(128) std::byte mail[2][kMailBytes];
};

// A value. Ranks are counted from 0 in the order of the node's ranks.
struct NodeLayout {
  int ranks = 0;
  size_t bank_bytes = 0;  // of stage; a multiple of the page size

  // A rank's piece of a tile, with room for rounding.
  size_t result_bytes() const {
    const size_t piece = bank_bytes / static_cast<size_t>(ranks > 2 ? ranks : 2);
    return (piece + 2 * kNodePageBytes - 1) / kNodePageBytes * kNodePageBytes;
  }
  static size_t header_bytes() { return (sizeof(RankBlock) + kNodePageBytes - 1) / kNodePageBytes * kNodePageBytes; }
  size_t staging_bytes() const { return kNodeBanks * (bank_bytes + 2 * result_bytes()); }
  size_t block_bytes() const { return header_bytes() + staging_bytes(); }
  size_t region_bytes() const { return block_bytes() * static_cast<size_t>(ranks); }
  size_t block_offset(int rank) const { return block_bytes() * static_cast<size_t>(rank); }
  // Within a rank's block.
  size_t stage_offset(size_t bank) const { return header_bytes() + bank * bank_bytes; }
  size_t partial_offset(size_t bank) const { return stage_offset(kNodeBanks) + bank * result_bytes(); }
  size_t result_offset(size_t bank) const { return partial_offset(kNodeBanks) + bank * result_bytes(); }
};

}  // namespace ccom
