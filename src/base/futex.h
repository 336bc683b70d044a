// SPDX-License-Identifier: Apache-2.0
//
// Futex wait and wake on memory shared between processes (hence not FUTEX_PRIVATE), and the fence that prevents lost
// wake-ups.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace ccom {

inline void futex_wake_all(const uint32_t* word) {
  ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Sleeps while *word is `expected`, at most this long; may return early.
inline void futex_wait(const uint32_t* word, uint32_t expected, std::chrono::nanoseconds at_most) {
  if (at_most.count() <= 0) return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(seconds.count());
  timeout.tv_nsec = static_cast<long>((at_most - seconds).count());
  ::syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

// Orders the caller's earlier stores before its later loads.
inline void full_fence() {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"  // clang has another name for it, and no -Wtsan
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wtsan"  // TSan does not model fences; no data is published through this one
  std::atomic_thread_fence(std::memory_order_seq_cst);
#pragma GCC diagnostic pop
}

}  // namespace ccom
