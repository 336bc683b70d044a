// SPDX-License-Identifier: Apache-2.0
//
// What lies where in a region of the shared segment:
//
//   RankLines[ranks]                       presence and sleep state
//   RingLines[ranks * (ranks-1) * channels]  two counters per ring
//   ring data, ring_bytes each             page-aligned, in the same order
//
// Every line has a single writer, or is a doorbell. All zero is the initial state. Nothing read from here is trusted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace ccom::shm {

// Two cache lines: processors prefetch them in pairs.
inline constexpr size_t kLineBytes = 128;
inline constexpr size_t kPageBytes = 4096;

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(std::atomic<uint64_t>) == 8);

struct RankLines {
  // Layout::fingerprint() once the rank is connected.
  alignas(kLineBytes) std::atomic<uint32_t> attached;
  alignas(kLineBytes) std::atomic<uint32_t> doorbell;  // a futex; incremented by every ring
  alignas(kLineBytes) std::atomic<uint32_t> sleeping;  // 1: ring the doorbell when there is work
  alignas(kLineBytes) std::atomic<uint32_t> left;      // 1: the rank sends nothing more
};
static_assert(sizeof(RankLines) == 4 * kLineBytes);

// Total bytes in and out: tail <= head <= tail + ring_bytes.
struct RingLines {
  alignas(kLineBytes) std::atomic<uint64_t> head;  // written by the sender
  alignas(kLineBytes) std::atomic<uint64_t> tail;  // written by the receiver
};
static_assert(sizeof(RingLines) == 2 * kLineBytes);

// One ring from one side.
struct RingView {
  RingLines* lines = nullptr;
  std::byte* data = nullptr;
  size_t ring_bytes = 0;
};

// A value. Ranks are numbered from 0 to ranks-1, in the order of ShmConfig::local_ranks.
struct Layout {
  int ranks = 0;
  int channels = 0;
  size_t ring_bytes = 0;

  size_t rings() const {
    return static_cast<size_t>(ranks) * static_cast<size_t>(ranks - 1) * static_cast<size_t>(channels);
  }
  size_t header_bytes() const;
  size_t region_bytes() const { return header_bytes() + rings() * ring_bytes; }
  size_t ring_index(int from, int to, int channel) const;
  size_t ring_offset_bytes(size_t index) const { return header_bytes() + index * ring_bytes; }
  RankLines& rank_lines(std::byte* region, int rank) const;
  RingView ring(std::byte* region, size_t index) const;
  // Distinguishes regions of different layout; never 0.
  uint32_t fingerprint() const;
};

}  // namespace ccom::shm
