// SPDX-License-Identifier: Apache-2.0
//
// Emulates the computation of a training loop during communication: an arithmetic loop over a buffer in the L1 cache,
// of adjustable length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ccom::bench {

// Used by one thread.
class Compute {
 public:
  Compute() { buffer_.fill(1); }

  // Calibrates rounds_for() on this core, for a few milliseconds.
  void calibrate();
  // At least 1.
  uint64_t rounds_for(double seconds) const;
  void run(uint64_t rounds);

 private:
  alignas(64) std::array<float, 1024> buffer_{};
  double seconds_per_round_ = 1e-7;
};

}  // namespace ccom::bench
