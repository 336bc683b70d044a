// SPDX-License-Identifier: Apache-2.0
//
// At most one thread drives the message protocol: the holder of the progress lock. Other threads wait for the lock or
// for an event that the holder signals.
//
// Without waiters, taking and releasing cost one atomic operation each.
#pragma once

#include <atomic>
#include <condition_variable>
#include <optional>

#include "base/mutex.h"
#include "base/time.h"

namespace ccom {

// Thread-safe. Everything done under the lock happens before what is done under it later.
class ProgressLock {
 public:
  bool try_take() {
    bool is_free = false;
    return taken_.compare_exchange_strong(is_free, true, std::memory_order_seq_cst);
  }
  void release() {
    taken_.store(false, std::memory_order_seq_cst);
    notify();
  }
  // Wakes the waiters so that they re-evaluate their conditions.
  void notify() {
    if (waiting_.load(std::memory_order_seq_cst) == 0) return;
    const Lock lock(mutex_);
    changed_.notify_all();
  }

  // Blocks until the lock is free or happened() is true after a notify(); false on timeout. `wake_driver` is called
  // after the caller is counted as a waiter, to make the holder give up the lock if it has to.
  template <typename Happened, typename WakeDriver>
  bool await(std::optional<Deadline> deadline, Happened happened, WakeDriver wake_driver) {
    waiting_.fetch_add(1, std::memory_order_seq_cst);
    wake_driver();
    Lock lock(mutex_);
    const auto is_over = [&] { return !taken_.load(std::memory_order_seq_cst) || happened(); };
    bool in_time = true;
    if (deadline) {
      in_time = lock.wait_until(changed_, deadline->when(), is_over);
    } else {
      lock.wait(changed_, is_over);
    }
    waiting_.fetch_sub(1, std::memory_order_seq_cst);
    return in_time;
  }
  bool is_wanted() const { return waiting_.load(std::memory_order_seq_cst) > 0; }
  bool is_taken() const { return taken_.load(std::memory_order_seq_cst); }

 private:
  std::atomic<bool> taken_{false};
  std::atomic<int> waiting_{0};
  Mutex mutex_;  // only for sleeping on changed_
  std::condition_variable changed_;
};

}  // namespace ccom
