// SPDX-License-Identifier: Apache-2.0
//
// A ccom communicator made through torch's store, with one queue for the operations that are not waited for at once.
#pragma once

#include <ccom/ccom.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace ccom_torch {

// Thread-safe.
class Communicator {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // Collective, blocking, at most `timeout`. Rank 0 leaves the communicator's id in the store.
  Communicator(c10d::Store& store, int rank, int size, Milliseconds timeout, const std::string& name);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Keeps the communicator from being closed. Raises if it is closed.
  class Use {
   public:
    explicit Use(Communicator& communicator);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ccomComm_t comm() const { return communicator_.comm_; }

   private:
    Communicator& communicator_;
  };

  // Deadline of the calls that this thread makes next; all calls of one moment have the same.
  void set_timeout(Milliseconds timeout);

  // Runs `job`, which must not throw, after everything that was queued before, on the queue's thread.
  void post(std::function<void()> job);
  // Nothing is queued: a call made now runs after all that were posted.
  bool is_idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  // Waits for an empty queue. False: not within `timeout`.
  bool drain(Milliseconds timeout);

  // Ends all operations, here and on the peers, with an error. Returns at once.
  void abort();
  // Waits at most `timeout` for queued operations, aborts what is left, and lets go of everything; `last` is called
  // while the communicator is still there and nothing uses it any more. Idempotent.
  void close(Milliseconds timeout, const std::function<void(ccomComm_t)>& last);
  bool is_closed() const { return closing_.load(std::memory_order_acquire); }
  ccomResult_t error();

 private:
  ccomComm_t comm_ = nullptr;
  ccomStream_t queue_ = nullptr;
  std::atomic<int64_t> timeout_ms_{0};
  std::atomic<int> pending_{0}, in_use_{0};
  std::atomic<bool> closing_{false};
  std::mutex queue_mutex_, close_mutex_;
};

// The name of the interface over which the job's master (MASTER_ADDR) is reached; "" if that says nothing.
std::string interface_towards_master();

}  // namespace ccom_torch
