// SPDX-License-Identifier: Apache-2.0
//
// The layout of a message in a ring. It starts at a multiple of 64 with its frame; a small payload follows directly, so
// that eight bytes and their frame are one cache line; a larger one starts on the next line. The end is padded to a
// multiple of 64.
//
// On an emulated fabric (pacer.h) the frame always has its own line, which ends with a time stamp: when the message has
// arrived.
#pragma once

#include "transports/transport.h"

namespace ccom::shm {

inline constexpr size_t kGrainBytes = 64;
// Messages up to this size are published whole. With the frame, at most half of the smallest ring.
inline constexpr size_t kSmallBytes = 1984;
// Larger ones are published tile by tile: the receiver drains one while the sender fills the next. All tile sizes from
// 4 to 64 KiB give the same bandwidth; small ones have the lower latency for 16 to 64 KiB.
inline constexpr size_t kTileBytes = size_t{8} << 10;
// The receiver frees this much at a time: more, since each sink call has a cost.
inline constexpr size_t kPieceBytes = size_t{32} << 10;

struct Frame {
  Envelope envelope;
  uint64_t payload_bytes = 0;
};
static_assert(sizeof(Frame) == 48 && kSmallBytes + sizeof(Frame) <= 2048);

constexpr size_t round_to_grain(size_t bytes) { return (bytes + kGrainBytes - 1) & ~(kGrainBytes - 1); }
// Offset from a frame to a small payload; for larger ones it is always kGrainBytes.
constexpr size_t frame_bytes(bool stamped) { return stamped ? kGrainBytes : sizeof(Frame); }
static_assert(sizeof(Frame) + sizeof(uint64_t) <= kGrainBytes && kGrainBytes + kSmallBytes <= 2048);

// Result of an attempt to move a message.
enum class Progress {
  Done,      // completely transferred
  Waiting,   // for the peer
  Mismatch,  // receiving only
  Broken,    // the peer's counter is invalid
};

}  // namespace ccom::shm
