// SPDX-License-Identifier: Apache-2.0
//
// How a message lies in a ring. It starts at a multiple of 64 with its frame; small ones follow the frame at once, so
// that eight bytes with their frame are one cache line, larger ones start on the next line; the end is padded to a
// multiple of 64.
//
// Where a fabric's speeds are imitated (pacer.h) a frame always has a line of its own, which ends with a stamp: the
// time at which the message has arrived.
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
// From a frame to the payload of a small message; of larger ones it is always kGrainBytes.
constexpr size_t frame_bytes(bool stamped) { return stamped ? kGrainBytes : sizeof(Frame); }
static_assert(sizeof(Frame) + sizeof(uint64_t) <= kGrainBytes && kGrainBytes + kSmallBytes <= 2048);

// What became of an attempt to move a message.
enum class Progress {
  Done,      // all of it went
  Waiting,   // for the other side
  Mismatch,  // incoming only
  Broken,    // the other side's counter is impossible
};

}  // namespace ccom::shm
