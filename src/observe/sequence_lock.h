// SPDX-License-Identifier: Apache-2.0
//
// Words in shared memory that one thread writes and anybody reads as a whole: whoever reads while they are written sees
// that and reads again. Of the form of Boehm, "Can Seqlocks Get Along with Programming Language Memory Models?"
// (MSPC 2012).
//
// All words must be atomics. The writer stores them with release order, the reader loads them with acquire order: who
// reads a word of an update finds the version odd, or changed, afterwards.
#pragma once

#include <atomic>
#include <cstdint>

namespace ccom {

// Zeroed memory is one that was never written.
class SequenceLock {
 public:
  // By one thread at a time.
  template <typename Fn>
  void write(Fn store) {
    const uint64_t before = version_.load(std::memory_order_relaxed);
    version_.store(before + 1, std::memory_order_relaxed);
    store();
    version_.store(before + 2, std::memory_order_release);
  }

  // Any thread or process. False if `load` found the words changing however often it was repeated: the writer was
  // stopped in the middle, or writes without end. What it loaded then means nothing.
  template <typename Fn>
  bool read(Fn load) const {
    constexpr int kAttempts = 1000;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const uint64_t before = version_.load(std::memory_order_acquire);
      load();
      if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) return true;
    }
    return false;
  }

  // Of the last complete update, counted from 1; 0: there was none.
  uint64_t updates() const { return version_.load(std::memory_order_acquire) / 2; }

 private:
  std::atomic<uint64_t> version_;
};

}  // namespace ccom
