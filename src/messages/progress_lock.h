// SPDX-License-Identifier: Apache-2.0
//
// Who drives: at most one thread holds the progress lock; others wait until it is free, or until what they want has happened
// meanwhile.
//
// Taking and releasing is one atomic operation each while nobody waits.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "base/time.h"

namespace ccom {

// Thread-safe. What is done under the progress lock happens before what is done under it later.
class ProgressLock {
 public:
  bool try_take() {
    bool is_free = false;
    return taken_.compare_exchange_strong(is_free, true, std::memory_order_seq_cst);
  }
  void release() {
    taken_.store(false, std::memory_order_seq_cst);
    tell();
  }
  // Something that somebody may wait for has happened.
  void tell() {
    if (waiting_.load(std::memory_order_seq_cst) == 0) return;
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

  // Blocks until the progress lock is free, or happened(), whatever tell() followed, or the time is up: false. `nudge` is called
  // once the caller counts as waiting: who holds the progress lock may be asked for it.
  template <typename Happened, typename Nudge>
  bool await(std::optional<Deadline> deadline, Happened happened, Nudge nudge) {
    waiting_.fetch_add(1, std::memory_order_seq_cst);
    nudge();
    std::unique_lock lock(mutex_);
    const auto is_over = [&] { return !taken_.load(std::memory_order_seq_cst) || happened(); };
    bool in_time = true;
    if (deadline) {
      in_time = changed_.wait_until(lock, deadline->when(), is_over);
    } else {
      changed_.wait(lock, is_over);
    }
    waiting_.fetch_sub(1, std::memory_order_seq_cst);
    return in_time;
  }
  bool is_wanted() const { return waiting_.load(std::memory_order_seq_cst) > 0; }
  bool is_taken() const { return taken_.load(std::memory_order_seq_cst); }

 private:
  std::atomic<bool> taken_{false};
  std::atomic<int> waiting_{0};
  std::mutex mutex_;  // of sleeping alone
  std::condition_variable changed_;
};

}  // namespace ccom
