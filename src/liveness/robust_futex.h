// SPDX-License-Identifier: Apache-2.0
//
// A word in shared memory that tells whether the thread that holds it is alive, maintained by the kernel.
//
// This is the mechanism behind robust mutexes (Linux: Documentation/locking/robust-futex-ABI). A thread registers a
// list of words; when it ends for any reason, the kernel walks the list before it tears down the address space and sets
// FUTEX_OWNER_DIED in every word that carries the thread's id. Compared with a robust pthread mutex that only its owner
// locks: checking is one load instead of a trylock, there is no state to make consistent, and every observer sees the
// death.
//
// The kernel walks at most 2048 entries.
#pragma once

#include <linux/futex.h>

#include <atomic>

#include "base/status.h"

namespace ccom {

// In shared memory; zeroed when new.
struct RobustFutex {
  // Thread id of the holder, with FUTEX_OWNER_DIED once it has died holding it; 0 when free.
  std::atomic<uint32_t> word;
  // Meaningful to the holder only; the kernel knows the first.
  robust_list entry;
  robust_list* before;

  int holder() const { return static_cast<int>(word.load(std::memory_order_acquire) & FUTEX_TID_MASK); }
  bool is_free() const { return word.load(std::memory_order_acquire) == 0; }
  bool is_broken() const { return (word.load(std::memory_order_acquire) & FUTEX_OWNER_DIED) != 0; }
};

// The robust futexes held by one thread. All methods run on that thread, as should the destructor; if it runs
// elsewhere, the thread must have ended. The thread must not use robust pthread mutexes, because it has only one list.
class RobustFutexList {
 public:
  RobustFutexList();
  ~RobustFutexList();
  RobustFutexList(const RobustFutexList&) = delete;
  RobustFutexList& operator=(const RobustFutexList&) = delete;

  Status hold(RobustFutex& line);
  void release(RobustFutex& line);

 private:
  const int thread_;
  int failure_ = 0;  // errno of the registration
  robust_list_head head_;
  void* previous_ = nullptr;  // the C library's list head
};

}  // namespace ccom
