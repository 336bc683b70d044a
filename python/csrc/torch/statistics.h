// SPDX-License-Identifier: Apache-2.0
//
// Counters of one process group, by operation.
#pragma once

#include <array>
#include <atomic>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace ccom_torch {

// Thread-safe.
class Statistics {
 public:
  struct Counters {
    std::atomic<uint64_t> count{0}, bytes{0};
    std::atomic<uint64_t> nanoseconds{0};         // in the operation itself
    std::atomic<uint64_t> waited_nanoseconds{0};  // blocked callers: sync calls, and wait() on async ones
  };
  static constexpr size_t kTypes = 20;  // of c10d::OpType

  Counters& of(c10d::OpType type) { return counters_[index(type)]; }
  const Counters& of(c10d::OpType type) const { return counters_[index(type)]; }

 private:
  static size_t index(c10d::OpType type) { return std::min(static_cast<size_t>(type), kTypes - 1); }
  std::array<Counters, kTypes> counters_;
};

}  // namespace ccom_torch
