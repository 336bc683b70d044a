// SPDX-License-Identifier: Apache-2.0
#include "bench/compute.h"

#include <algorithm>
#include <chrono>

namespace ccom::bench {

// The minimum of several: the speed of an undisturbed core.
void Compute::calibrate() {
  constexpr uint64_t kRounds = 2000;
  double least = 1;
  for (int i = 0; i < 10; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run(kRounds);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    least = std::min(least, took.count());
  }
  seconds_per_round_ = std::max(least / kRounds, 1e-9);
}

uint64_t Compute::rounds_for(double seconds) const {
  return std::max<uint64_t>(1, static_cast<uint64_t>(seconds / seconds_per_round_));
}

void Compute::run(uint64_t rounds) {
  for (uint64_t round = 0; round < rounds; ++round) {
    for (float& value : buffer_) value = value * 0.999F + 0.5F;
    asm volatile("" : : "r"(buffer_.data()) : "memory");  // The next round needs this one's values.
  }
}

}  // namespace ccom::bench
