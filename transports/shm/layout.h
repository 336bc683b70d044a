// SPDX-License-Identifier: Apache-2.0
//
// What lies where in a region of the shared segment:
//
//   RankLines[ranks]                       who is there, who sleeps
//   RingLines[ranks * (ranks-1) * channels]  two counters for every ring
//   ring data, ring_bytes each             page-aligned, in the same order
//
// Every line has one writer, or is a doorbell. All zero is the initial state. Nothing read from here is trusted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace ccom::shm {

// Two cache lines: processors fetch them in pairs.
inline constexpr size_t kLineBytes = 128;
inline constexpr size_t kPageBytes = 4096;

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(std::atomic<uint64_t>) == 8);

struct RankLines {
  // Layout::fingerprint() from the moment the rank is connected.
  alignas(kLineBytes) std::atomic<uint32_t> attached;
  alignas(kLineBytes) std::atomic<uint32_t> doorbell;  // a futex; grows with every ring
  alignas(kLineBytes) std::atomic<uint32_t> sleeping;  // 1: ring the doorbell when there is news
  alignas(kLineBytes) std::atomic<uint32_t> left;      // 1: nothing more will come
};
static_assert(sizeof(RankLines) == 4 * kLineBytes);

// Bytes that ever went in and out: tail <= head <= tail + ring_bytes.
struct RingLines {
  alignas(kLineBytes) std::atomic<uint64_t> head;  // written by the sender
  alignas(kLineBytes) std::atomic<uint64_t> tail;  // written by the receiver
};
static_assert(sizeof(RingLines) == 2 * kLineBytes);

// One ring as one of its sides sees it.
struct RingView {
  RingLines* lines = nullptr;
  std::byte* data = nullptr;
  size_t ring_bytes = 0;
};

// A value. Ranks are counted from 0 to ranks-1 here, in the order of ShmConfig::local_ranks.
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
  // Tells regions of different form apart; never 0.
  uint32_t fingerprint() const;
};

}  // namespace ccom::shm
