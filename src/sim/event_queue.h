// SPDX-License-Identifier: Apache-2.0
//
// A monotone priority queue: nothing is added before what was taken last. A radix heap: entries lie in buckets by the
// highest bit in which their time differs from the last one taken, so that taking and adding cost a few moves each,
// whatever the number of entries. Source: Ahuja et al., Faster algorithms for the shortest path problem, JACM 37(2),
// 1990.
//
// Entries of equal time are taken in the order in which they were added: what is moved to another bucket stays in
// order, and equal times are always in one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.h"

namespace ccom {

// Picoseconds since the start: 200 days fit, and a byte at a terabyte per second takes one.
using SimTime = uint64_t;
inline SimTime picoseconds(double ns) { return static_cast<SimTime>(std::llround(ns * 1e3)); }
inline double nanoseconds(SimTime time) { return static_cast<double>(time) / 1e3; }

struct ClockEvent {
  SimTime time = 0;
  uint32_t kind = 0;
  uint32_t subject = 0;
};

class EventQueue {
 public:
  void add(const ClockEvent& event) {
    CCOM_ASSERT(event.time >= last_);
    buckets_[bucket_of(event.time)].push_back(event);
    ++size_;
  }
  bool empty() const { return size_ == 0; }
  // The earliest. Not for an empty queue.
  ClockEvent take() {
    if (taken_ == buckets_[0].size()) refill();
    --size_;
    return buckets_[0][taken_++];
  }

 private:
  size_t bucket_of(SimTime time) const { return static_cast<size_t>(std::bit_width(time ^ last_)); }

  void refill() {
    buckets_[0].clear();
    taken_ = 0;
    size_t first = 1;
    while (buckets_[first].empty()) ++first;
    std::vector<ClockEvent>& bucket = buckets_[first];
    last_ = bucket.front().time;
    for (const ClockEvent& event : bucket) last_ = std::min(last_, event.time);
    for (const ClockEvent& event : bucket) buckets_[bucket_of(event.time)].push_back(event);
    bucket.clear();
  }

  std::array<std::vector<ClockEvent>, 65> buckets_;
  size_t taken_ = 0;  // of bucket 0, which grows while it is taken from
  SimTime last_ = 0;
  size_t size_ = 0;
};

}  // namespace ccom
