// SPDX-License-Identifier: Apache-2.0
//
// The 16- and 8-bit floating formats: their numbers, and the scalar conversions that define what every kernel must
// compute.
//
// A code is sign, exponent, mantissa from the top, in the low bits of a uint32_t; "magnitude" is the code without its
// sign. widen() is exact. narrow() rounds once, to nearest even, keeps subnormals, and turns every NaN into the one
// positive quiet NaN; where there is no infinity an overflow is a NaN that keeps its sign. Both use integer arithmetic
// and float additions whose results are normal, so that flush-to-zero changes no bit. E4M3FN and E5M2: OCP 8-bit
// Floating Point Specification (OFP8) 1.0.
#pragma once

#include <bit>
#include <cstdint>

namespace ccom {

struct NarrowFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  uint32_t max_finite;  // magnitudes, from here on
  uint32_t overflow;    // what a value too large for the format becomes: infinity, or NaN where there is none
  uint32_t nan;

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr uint32_t magnitude_mask() const { return (1u << (bits() - 1)) - 1; }
  // By how much a mantissa moves between this format and float.
  constexpr int mantissa_shift() const { return 23 - mantissa_bits; }
  // What a normal number's exponent gains on the way to float, in place.
  constexpr uint32_t exponent_offset() const { return static_cast<uint32_t>(127 - bias) << 23; }
  // The smallest normal number, as the bits of a float.
  constexpr uint32_t min_normal_as_float() const { return static_cast<uint32_t>(128 - bias) << 23; }
  // A power of two, as the bits of a float, whose last place is the smallest subnormal: adding it to a smaller
  // magnitude rounds that magnitude to a subnormal code in the low bits.
  constexpr uint32_t subnormal_rounder() const { return static_cast<uint32_t>(151 - bias - mantissa_bits) << 23; }
};

inline constexpr NarrowFormat kFloat16{5, 10, 15, 0x7bff, 0x7c00, 0x7e00};
inline constexpr NarrowFormat kBfloat16{8, 7, 127, 0x7f7f, 0x7f80, 0x7fc0};
inline constexpr NarrowFormat kFloat8e4m3{4, 3, 7, 0x7e, 0x7f, 0x7f};
inline constexpr NarrowFormat kFloat8e5m2{5, 2, 15, 0x7b, 0x7c, 0x7e};

constexpr float widen(const NarrowFormat& format, uint32_t code) {
  const uint32_t magnitude = code & format.magnitude_mask();
  const uint32_t sign = (code ^ magnitude) << (32 - format.bits());
  const uint32_t shifted = magnitude << format.mantissa_shift();
  uint32_t result = shifted + format.exponent_offset();
  if (magnitude > format.max_finite) {
    result |= 0x7f800000;
  } else if (format.bias != 127 && magnitude < (1u << format.mantissa_bits)) {
    // With the exponent of the smallest normal number the implicit one is too much: take it off again.
    const uint32_t implicit_one = format.min_normal_as_float();
    result = std::bit_cast<uint32_t>(std::bit_cast<float>(shifted + implicit_one) - std::bit_cast<float>(implicit_one));
  }
  return std::bit_cast<float>(result | sign);
}

constexpr uint32_t narrow(const NarrowFormat& format, float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t sign = (bits ^ magnitude) >> (32 - format.bits());
  if (magnitude > 0x7f800000) return format.nan;
  if (format.bias != 127 && magnitude < format.min_normal_as_float()) {
    const uint32_t rounder = format.subnormal_rounder();
    const float rounded = std::bit_cast<float>(magnitude) + std::bit_cast<float>(rounder);
    return sign | (std::bit_cast<uint32_t>(rounded) - rounder);
  }
  const int shift = format.mantissa_shift();
  const uint32_t half_less_one = (1u << (shift - 1)) - 1;
  const uint32_t odd = (magnitude >> shift) & 1;
  const uint32_t rounded = (magnitude - format.exponent_offset() + half_less_one + odd) >> shift;
  return sign | (rounded < format.overflow ? rounded : format.overflow);
}

// narrow() with stochastic rounding: the upper bits of `random`, as many as are dropped, are added before they are. A
// number up to the largest finite one becomes finite, a larger one overflows.
constexpr uint32_t narrow_stochastic(const NarrowFormat& format, float value, uint32_t random) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t sign = (bits ^ magnitude) >> (32 - format.bits());
  if (magnitude > 0x7f800000) return format.nan;
  uint32_t significand = magnitude - format.exponent_offset();
  uint32_t dropped = static_cast<uint32_t>(format.mantissa_shift());
  if (format.bias != 127 && magnitude < format.min_normal_as_float()) {
    significand = (magnitude & 0x7fffff) | 0x800000;
    dropped += (format.min_normal_as_float() >> 23) - (magnitude >> 23);
    if (dropped > 31) return sign;
  }
  if (significand >> dropped > format.max_finite) return sign | format.overflow;
  const uint32_t rounded = (significand + (random >> (32 - dropped))) >> dropped;
  return sign | (rounded < format.max_finite ? rounded : format.max_finite);
}

}  // namespace ccom
