// SPDX-License-Identifier: Apache-2.0
//
// The operations of a communicator that nobody waits for yet.
#pragma once

#include <ccom/ccom.h>

#include <atomic>
#include <functional>
#include <mutex>

namespace ccom_torch {

// Jobs run in the order of post(), one at a time: in a thread of ccom's, or in threads that call run_next().
// Thread-safe.
class Queue {
 public:
  Queue() = default;
  ~Queue() { close(); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // `job` must not throw. Throws if there is no thread.
  void post(std::function<void()> job);
  // All jobs have run.
  bool is_idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  // Runs the next job in this thread. False: there is none, or another thread runs one.
  bool run_next();
  // Waits until all jobs have run; there are no later ones. Idempotent.
  void close();

 private:
  std::mutex mutex_;
  std::atomic<ccomStream_t> stream_{nullptr};  // written under mutex_
  std::atomic<int> pending_{0}, helpers_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace ccom_torch
