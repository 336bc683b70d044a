// SPDX-License-Identifier: Apache-2.0
//
// What a forked child must have anew: locks, which another thread of the parent may have held at the fork, and numbers
// that tell processes apart.
#pragma once

#include <atomic>
#include <cstdint>

namespace ccom {

// Incremented in a forked child: tells it from the process that loaded the library, and from its parent.
uint32_t fork_generation();

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

}  // namespace ccom
