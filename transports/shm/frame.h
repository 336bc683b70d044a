// SPDX-License-Identifier: Apache-2.0
//
// How a message lies in a ring. It starts at a multiple of 64 with its frame; small ones follow the frame at once, so
// that eight bytes with their frame are one cache line, larger ones start on the next line; the end is padded to a
// multiple of 64.
#pragma once

#include "transports/transport.h"

namespace ccom::shm {

inline constexpr size_t kGrainBytes = 64;
// Messages up to this size are published whole. Together with the frame at most half of the smallest ring.
inline constexpr size_t kSmallBytes = 1984;
// Larger ones are published tile by tile: the receiver empties one while the sender fills the next. Of the sizes 4 to
// 64 KiB all give the same bandwidth, and small ones the better latency for 16 to 64 KiB.
inline constexpr size_t kTileBytes = size_t{8} << 10;
// What the receiver takes out at a time before it frees it: more, since a sink has a price per call.
inline constexpr size_t kPieceBytes = size_t{32} << 10;

struct Frame {
  Envelope envelope;
  uint64_t payload_bytes = 0;
};
static_assert(sizeof(Frame) == 48 && kSmallBytes + sizeof(Frame) <= 2048);

constexpr size_t round_to_grain(size_t bytes) { return (bytes + kGrainBytes - 1) & ~(kGrainBytes - 1); }
constexpr size_t payload_offset_bytes(size_t payload_bytes) {
  return payload_bytes <= kSmallBytes ? sizeof(Frame) : kGrainBytes;
}

// What became of an attempt to move a message.
enum class Progress {
  Done,      // all of it went
  Waiting,   // for the other side
  Mismatch,  // incoming only
  Broken,    // the other side's counter is impossible
};

}  // namespace ccom::shm
