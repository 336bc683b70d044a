// SPDX-License-Identifier: Apache-2.0
//
// Turns on a communicator: calls run one at a time, in the order in which tickets were taken.
//
// Nobody else around: two atomic operations, no lock, no system call.
#pragma once

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace ccom {

// Thread-safe.
class Turns {
 public:
  using Ticket = uint64_t;

  Ticket take() { return next_.fetch_add(1, std::memory_order_relaxed); }

  // Blocks until it is the ticket's turn. Bounded by the deadlines of the operations before it.
  void wait(Ticket ticket) {
    if (serving_.load(std::memory_order_acquire) == ticket) return;
    std::unique_lock lock(mutex_);
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    turn_.wait(lock, [this, ticket] { return serving_.load(std::memory_order_seq_cst) == ticket; });
    waiters_.fetch_sub(1, std::memory_order_relaxed);
  }

  void pass() {
    passing_.fetch_add(1, std::memory_order_relaxed);
    serving_.fetch_add(1, std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_seq_cst) > 0) {
      const std::lock_guard lock(mutex_);
      turn_.notify_all();
    }
    passing_.fetch_sub(1, std::memory_order_release);  // the last touch of this object
  }

  // For the owner, after its own last turn: until nobody is inside pass() any more.
  void settle() const {
    while (passing_.load(std::memory_order_acquire) > 0) ::sched_yield();
  }

 private:
  std::atomic<uint64_t> next_{0}, serving_{0};
  std::atomic<uint32_t> waiters_{0}, passing_{0};
  std::mutex mutex_;
  std::condition_variable turn_;
};

}  // namespace ccom
