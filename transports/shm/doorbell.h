// SPDX-License-Identifier: Apache-2.0
//
// How a rank sleeps until another one has news for it, and costs nobody a system call while it is awake.
//
// Sleeper: sleeping = 1; fence; look for news; sleep on the doorbell unless there is any.
// Ringer:  publish news; fence; if the other is sleeping, ring.
// Of two fences one is first, so either the sleeper sees the news or the ringer sees the sleeper (Dekker).
#pragma once

#include <chrono>

#include "base/futex.h"
#include "transports/shm/layout.h"

namespace ccom::shm {

// Wakes the rank whose lines these are, if it sleeps or is about to. Thread-safe.
void ring(RankLines& lines);

// The sleeper's side; one at a time per rank. Between construction and sleep() the caller looks for news.
class Nap {
 public:
  explicit Nap(RankLines& lines);
  Nap(const Nap&) = delete;
  Nap& operator=(const Nap&) = delete;
  ~Nap() { lines_.sleeping.store(0, std::memory_order_relaxed); }
  // Until someone has rung since construction or the time is up; may return early.
  void sleep(std::chrono::nanoseconds at_most);

 private:
  RankLines& lines_;
  const uint32_t before_;
};

}  // namespace ccom::shm
