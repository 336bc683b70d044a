// SPDX-License-Identifier: Apache-2.0
//
// Memory formats of elements, for the expected values. Independent of the library, so that an error in its kernels is
// not repeated here. Narrow floats are computed as doubles; only representable values are stored.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ccom::bench {

struct Complex {
  double real = 0;
  double imaginary = 0;
  friend bool operator==(const Complex&, const Complex&) = default;
};

enum class Special { InfinityAndNan, NanOnly };  // Meaning of the largest exponent; NanOnly as in E4M3FN.

// A binary floating format with a sign, `exponent_bits` and `mantissa_bits`, below 32 bits.
template <class Storage, int exponent_bits, int mantissa_bits, Special special = Special::InfinityAndNan>
struct NarrowFloat {
  using Domain = double;
  static constexpr int kMantissaBits = mantissa_bits;
  static constexpr int kBias = (1 << (exponent_bits - 1)) - 1;
  static constexpr uint32_t kTopExponent = (1u << exponent_bits) - 1;
  static constexpr uint32_t kMantissaMask = (1u << mantissa_bits) - 1;

  static double decode(uint32_t bits) {
    const uint32_t exponent = (bits >> mantissa_bits) & kTopExponent;
    const uint32_t mantissa = bits & kMantissaMask;
    const bool negative = ((bits >> (mantissa_bits + exponent_bits)) & 1) != 0;
    double magnitude = 0;
    if (exponent == 0) {
      magnitude = std::ldexp(static_cast<double>(mantissa), 1 - kBias - mantissa_bits);
    } else if (exponent == kTopExponent && (special == Special::InfinityAndNan || mantissa == kMantissaMask)) {
      magnitude = special == Special::InfinityAndNan && mantissa == 0 ? HUGE_VAL : std::nan("");
    } else {
      const uint32_t wide = ((exponent + 127 - kBias) << 23) | (mantissa << (23 - mantissa_bits));
      magnitude = std::bit_cast<float>(wide);
    }
    return negative ? -magnitude : magnitude;
  }

  // `value` is zero or a normal number of the format, exactly.
  static uint32_t encode(double value) {
    const uint32_t wide = std::bit_cast<uint32_t>(static_cast<float>(value));
    const uint32_t sign = (wide >> 31) << (exponent_bits + mantissa_bits);
    if ((wide << 1) == 0) return sign;
    const uint32_t exponent = ((wide >> 23) & 0xff) + kBias - 127;
    return sign | (exponent << mantissa_bits) | ((wide & 0x7fffff) >> (23 - mantissa_bits));
  }

  static Domain load(const std::byte* from) {
    Storage bits{};
    std::memcpy(&bits, from, sizeof bits);
    return decode(bits);
  }
  static void store(std::byte* to, Domain value) {
    const auto bits = static_cast<Storage>(encode(value));
    std::memcpy(to, &bits, sizeof bits);
  }
};

using Half = NarrowFloat<uint16_t, 5, 10>;
using Brain = NarrowFloat<uint16_t, 8, 7>;
using E4M3 = NarrowFloat<uint8_t, 4, 3, Special::NanOnly>;
using E5M2 = NarrowFloat<uint8_t, 5, 2>;

template <class T>
struct WideFloat {
  using Domain = double;
  static constexpr int kMantissaBits = sizeof(T) == 4 ? 23 : 52;
  static Domain load(const std::byte* from) {
    T value{};
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static void store(std::byte* to, Domain value) {
    const T narrowed = static_cast<T>(value);
    std::memcpy(to, &narrowed, sizeof narrowed);
  }
};

template <class T>
struct ComplexOf {
  using Domain = Complex;
  static constexpr int kMantissaBits = WideFloat<T>::kMantissaBits;
  static Domain load(const std::byte* from) { return {WideFloat<T>::load(from), WideFloat<T>::load(from + sizeof(T))}; }
  static void store(std::byte* to, Domain value) {
    WideFloat<T>::store(to, value.real);
    WideFloat<T>::store(to + sizeof(T), value.imaginary);
  }
};

template <class T>
struct Integer {
  using Domain = T;
  static constexpr int kMantissaBits = 0;  // Integers are always compared exactly.
  static Domain load(const std::byte* from) {
    T value{};
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static void store(std::byte* to, Domain value) { std::memcpy(to, &value, sizeof value); }
};

// One byte, 0 or 1. Loaded unchanged: any other value is a wrong result.
struct Boolean : Integer<uint8_t> {};

}  // namespace ccom::bench
