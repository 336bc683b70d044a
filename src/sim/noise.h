// SPDX-License-Identifier: Apache-2.0
//
// Room-private: random numbers that depend on nothing but a seed and what they are for.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/types.h"
#include "plan/fingerprint.h"

namespace ccom {

// The n-th of a rank's numbers, exponentially distributed with mean 1.
inline double exponential(uint64_t seed, Rank rank, uint64_t n) {
  const uint64_t bits = mix(mix(mix(seed) ^ static_cast<uint64_t>(rank)) ^ n);
  return -std::log1p(-static_cast<double>(bits >> 11) * 0x1p-53);
}

}  // namespace ccom
