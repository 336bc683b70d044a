// SPDX-License-Identifier: Apache-2.0
//
// What a forked child must have anew: locks, which another thread of the parent may have held at the fork, numbers that
// tell processes apart, and values that another thread was making.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"

namespace ccom {

namespace internal {
extern uint32_t forks;
}
// Incremented in a forked child: tells it from the process that loaded the library, and from its parent.
inline uint32_t fork_generation() { return internal::forks; }

// One T of each process, made by the first who asks; a forked child leaves its parent's alone, in whatever state, and
// has another one. For static objects; never destroyed, because threads may outlive these. Thread-safe.
template <typename T>
class PerProcess {
 public:
  // bad_alloc, the first time.
  T& get() {
    const uint32_t generation = fork_generation();
    Entry* current = entry_.load(std::memory_order_acquire);
    if (current != nullptr && current->generation == generation) return current->value;
    auto* const made = new Entry{generation};
    if (entry_.compare_exchange_strong(current, made, std::memory_order_acq_rel)) return made->value;
    delete made;
    return current->value;
  }

 private:
  struct Entry {
    uint32_t generation;
    T value{};
  };
  std::atomic<Entry*> entry_{nullptr};
};

// A value that is made by the first who asks, and that forked children have too. Where a fork comes while it is made,
// the child makes its own: a function's static object would have it wait for a thread that it does not have. For static
// objects; never destroyed, because threads may outlive these. Thread-safe.
template <typename T>
class MadeOnce {
 public:
  // What `make` throws, and bad_alloc, the first time.
  template <typename Make>
  T& get(const Make& make) {
    if (T* const ready = value_.load(std::memory_order_acquire); ready != nullptr) return *ready;
    const Lock lock(making_.get());
    if (value_.load(std::memory_order_relaxed) == nullptr) value_.store(new T(make()), std::memory_order_release);
    return *value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<T*> value_{nullptr};
  PerProcess<Mutex> making_;
};

}  // namespace ccom
