// SPDX-License-Identifier: Apache-2.0
//
// What a training loop does while communication goes on, reduced to arithmetic: a loop over a buffer that stays in the
// L1 cache, of a length that can be chosen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ccom::bench {

// Belongs to one thread.
class Compute {
 public:
  Compute() { buffer_.fill(1); }

  // Measures this core, for a few milliseconds, so that rounds_for() has something to go by.
  void calibrate();
  // At least 1.
  uint64_t rounds_for(double seconds) const;
  void run(uint64_t rounds);

 private:
  alignas(64) std::array<float, 1024> buffer_{};
  double seconds_per_round_ = 1e-7;
};

}  // namespace ccom::bench
