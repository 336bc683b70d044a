// SPDX-License-Identifier: Apache-2.0
//
// Turns on a communicator: calls run one at a time, in the order in which tickets were taken.
//
// One word holds both counters, so that taking and passing are one atomic operation each and each sees the other: who
// takes a ticket while nobody has a turn runs at once, who passes while nobody has a ticket need not look for waiters.
// Nobody else around: two atomic operations, no lock, no system call.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>

#include "base/mutex.h"

namespace ccom {

// Thread-safe. May be destroyed by the holder of the last turn as soon as its wait() is over.
class Turns {
 public:
  struct Ticket {
    uint32_t number = 0;
    bool is_first = false;  // nobody had a turn when it was taken
  };

  Ticket take() {
    const uint64_t before = state_.fetch_add(kTake, std::memory_order_acq_rel);
    const auto number = static_cast<uint32_t>(before >> 32);
    return {number, number == static_cast<uint32_t>(before)};
  }

  // Blocks until it is the ticket's turn. Bounded by the deadlines of the operations before it.
  void wait(Ticket ticket) {
    if (ticket.is_first) return;
    Lock lock(mutex_);
    lock.wait(turn_, [this, ticket]() CCOM_REQUIRES(mutex_) { return has_handed_ && handed_ == ticket.number; });
  }

  void pass(Ticket ticket) {
    const uint32_t next = ticket.number + 1;
    // The served half may not carry into the other one.
    const uint64_t step = next == 0 ? uint64_t{1} - kTake : 1;
    const uint64_t before = state_.fetch_add(step, std::memory_order_acq_rel);
    if (static_cast<uint32_t>(before >> 32) == next) return;
    // Somebody took the next ticket while we had the turn, and waits, or is going to.
    const Lock lock(mutex_);
    handed_ = next;
    has_handed_ = true;
    turn_.notify_all();
  }

 private:
  static constexpr uint64_t kTake = uint64_t{1} << 32;
  std::atomic<uint64_t> state_{0};  // tickets taken << 32 | turns passed
  Mutex mutex_;
  std::condition_variable turn_;
  uint32_t handed_ CCOM_GUARDED_BY(mutex_) = 0;  // the ticket whose turn was last handed over
  bool has_handed_ CCOM_GUARDED_BY(mutex_) = false;
};

}  // namespace ccom
