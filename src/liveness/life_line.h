// SPDX-License-Identifier: Apache-2.0
//
// A word in shared memory that says whether the thread that holds it still lives, kept true by the kernel.
//
// This is what a robust mutex is made of (Linux: Documentation/locking/robust-futex-ABI). A thread registers a list of
// words; when it ends in whatever way, the kernel walks the list before it tears down the memory, and sets
// FUTEX_OWNER_DIED in each word that carries the thread's number. Compared with a pthread mutex that nobody but its
// holder ever locks: looking is one load instead of a trylock, nothing has to be made consistent, and a death stays
// visible to all who look.
//
// The kernel walks at most 2048 entries.
#pragma once

#include <linux/futex.h>

#include <atomic>

#include "base/status.h"

namespace ccom {

// In shared memory, zeroed when new.
struct LifeLine {
  std::atomic<uint32_t> word;  // holder's thread number, FUTEX_OWNER_DIED when it has died holding it, 0 when free
  robust_list entry;           // the holder's; has no meaning to others

  bool is_free() const { return word.load(std::memory_order_acquire) == 0; }
  bool is_broken() const { return (word.load(std::memory_order_acquire) & FUTEX_OWNER_DIED) != 0; }
};

// The lines that one thread holds. All methods, and better the destructor, on that thread; it must not use robust
// pthread mutexes meanwhile, for it has only one list. If the destructor runs on another thread, that one has ended.
class LifeLines {
 public:
  LifeLines();
  ~LifeLines();
  LifeLines(const LifeLines&) = delete;
  LifeLines& operator=(const LifeLines&) = delete;

  Status hold(LifeLine& line);
  void release(LifeLine& line);

 private:
  const int thread_;
  int failure_ = 0;  // errno of the registration
  robust_list_head head_;
  void* previous_ = nullptr;  // the C library's list
};

}  // namespace ccom
