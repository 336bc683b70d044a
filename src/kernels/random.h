// SPDX-License-Identifier: Apache-2.0
//
// Random bits for stochastic rounding: a hash of (seed, index of the element in the whole vector), so that they do not
// depend on how the vector is cut, on the width of vectors, on threads or on ranks. The hash of 32 bits has the form of
// lowbias32 (C. Wellons, "Prospecting for Hash Functions", 2018): two multiplications, with a key before each.
#pragma once

#include <cstdint>

namespace ccom {

// What a seed and the upper half of the index make of the hash.
struct RandomKey {
  uint32_t first = 0;
  uint32_t second = 0;
};

// The finisher of splitmix64: 64 well-mixed bits.
constexpr RandomKey random_key(uint64_t seed, uint32_t upper_index) {
  uint64_t x = seed + 0x9e3779b97f4a7c15 * (uint64_t{upper_index} + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  x ^= x >> 31;
  return {static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)};
}

constexpr uint32_t random_bits(RandomKey key, uint32_t index) {
  uint32_t x = index ^ key.first;
  x = (x ^ (x >> 16)) * 0x7feb352d;
  x = ((x ^ (x >> 15)) ^ key.second) * 0x846ca68b;
  return x ^ (x >> 16);
}

// What narrow_stochastic() takes for an element. 16 bits are enough for bfloat16: two elements share a hash.
constexpr uint32_t random_for_element(RandomKey key, uint32_t index) { return random_bits(key, index); }
constexpr uint32_t random_for_bfloat16(RandomKey key, uint32_t index) {
  const uint32_t pair = random_bits(key, index / 2);
  return ~(index % 2 == 0 ? pair << 16 : pair);
}

}  // namespace ccom
