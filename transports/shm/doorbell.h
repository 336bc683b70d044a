// SPDX-License-Identifier: Apache-2.0
//
// How a rank sleeps until another rank has work for it, without system calls for ranks that are awake.
//
// Sleeper: sleeping = 1; fence; check for work; if there is none, sleep on the doorbell.
// Waker:   publish work; fence; if the other is sleeping, ring its doorbell.
// One of the two fences comes first, so either the sleeper sees the work or the waker sees the sleeper (Dekker).
#pragma once

#include <chrono>

#include "base/futex.h"
#include "transports/shm/layout.h"

namespace ccom::shm {

// Wakes the rank that owns these lines, if it sleeps or is about to. Thread-safe.
void ring(RankLines& lines);

// The sleeper's side; one at a time per rank. Between construction and sleep() the caller checks for work.
class Nap {
 public:
  explicit Nap(RankLines& lines);
  Nap(const Nap&) = delete;
  Nap& operator=(const Nap&) = delete;
  ~Nap() { lines_.sleeping.store(0, std::memory_order_relaxed); }
  // Sleeps until the doorbell has rung since construction, or a timeout; may return early.
  void sleep(std::chrono::nanoseconds at_most);

 private:
  RankLines& lines_;
  const uint32_t before_;
};

}  // namespace ccom::shm
