// SPDX-License-Identifier: Apache-2.0
//
// How a rank gets at the buffers of its node-mates: because they are threads of one process, or because the buffers lie
// in an arena (base/arena.h) that every rank of the node has mapped.
#pragma once

#include <array>
#include <vector>

#include "base/types.h"
#include "node/layout.h"

namespace ccom {

// Where a call's buffers are, in words that mean the same to all ranks. Travels in a flag line.
struct Announcement {
  enum Kind : uint32_t { kNowhere = 0, kAddress = 1, kArena = 2 };
  struct Where {
    uint64_t at = 0;  // an address, or an offset in the rank's arena
    uint32_t kind = kNowhere;
    uint32_t unused = 0;
  };
  Where input, output;
};
static_assert(sizeof(Announcement) <= kLinePayloadBytes);

// What one rank's process looks like from here.
struct NodeMate {
  bool same_process = false;
  Bytes arena;  // as mapped here; empty: not at all
};

// A value.
class ReachMap {
 public:
  // mates: by place. uses_arenas: every rank of the node has mapped those of all others.
  ReachMap(std::vector<NodeMate> mates, int place, bool uses_arenas);

  // For a buffer of this rank.
  Announcement::Where describe(const void* buffer, size_t size_bytes) const;
  // Where size_bytes that a rank described lie here; null if that is impossible.
  std::byte* resolve(int place, const Announcement::Where& where, size_t size_bytes) const;

 private:
  std::vector<NodeMate> mates_;
  size_t place_;
  bool one_process_ = true;
  bool uses_arenas_;
};

}  // namespace ccom
