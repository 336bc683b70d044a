// SPDX-License-Identifier: Apache-2.0
//
// Words that stand for contributions, and their sums: what both verifiers compute with instead of data.
#pragma once

#include <cstdint>

namespace ccom {

inline constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

// Of two sums below kPrime.
constexpr uint64_t add_mod(uint64_t a, uint64_t b) {
  const uint64_t sum = a + b;
  return sum >= kPrime ? sum - kPrime : sum;
}

constexpr uint64_t mix(uint64_t x) {  // splitmix64's finaliser
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace ccom
