// SPDX-License-Identifier: Apache-2.0
//
// The inputs behind expected.h: one element from 64 random bits. Private to expected.cc.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "bench/expected.h"
#include "bench/formats.h"

namespace ccom::bench {

// A bijection of 64 bits that scatters neighbours.
constexpr uint64_t scatter(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

// The random bits of one rank's input in one iteration.
class Randomness {
 public:
  Randomness(const Pattern& pattern, uint64_t iteration, int rank)
      : key_(scatter(scatter(pattern.seed + iteration) + static_cast<uint64_t>(rank) + 1)) {}
  uint64_t operator[](size_t index) const { return scatter(key_ + index); }

 private:
  uint64_t key_;
};

// 0 <= result < range, from the upper half of `bits`.
constexpr uint64_t below(uint64_t range, uint64_t bits) { return ((bits >> 32) * range) >> 32; }

template <class Codec>
constexpr bool kIsInteger = std::is_integral_v<typename Codec::Domain> && !std::is_same_v<Codec, Boolean>;

// The largest absolute value up to which the format holds every integer, bounded so that sums fit in the generator.
template <class Codec>
constexpr int64_t largest_exact(Reduction reduction) {
  const int64_t limit = int64_t{1} << std::min(Codec::kMantissaBits + 1, 30);
  return reduction == Reduction::PreMulSum ? limit / 2 : limit;  // Scalars are 1 and 2.
}

// The inputs of one rank in one iteration.
template <class Codec>
class Inputs {
 public:
  using Domain = typename Codec::Domain;

  Inputs(const Pattern& pattern, uint64_t iteration, int rank)
      : pattern_(pattern),
        random_(pattern, iteration, rank),
        rank_(static_cast<uint64_t>(rank)),
        ranks_(static_cast<uint64_t>(pattern.ranks)),
        limit_(largest_exact<Codec>(pattern.reduction)),
        most_(std::max<int64_t>(1, limit_ / pattern.ranks)) {}

  Domain operator[](size_t index) const {
    const uint64_t bits = random_[index];
    if constexpr (kIsInteger<Codec>)
      return integer(bits);
    else if constexpr (std::is_same_v<Codec, Boolean>)
      return boolean(bits);
    else if constexpr (std::is_same_v<Domain, double>)
      return real(index, bits);
    else
      return complex(index, bits);
  }

 private:
  Domain integer(uint64_t bits) const {
    using T = Domain;
    const uint64_t mostly_set = bits | std::rotl(bits, 21) | std::rotl(bits, 42);
    switch (pattern_.reduction) {
      case Reduction::Prod: return static_cast<T>(bits | 1);
      case Reduction::UserOrdered: return static_cast<T>(bits | uint64_t{1} << sizeof(T) * 4);  // no factor is 0
      case Reduction::Band: return static_cast<T>(mostly_set);
      case Reduction::Bor: return static_cast<T>(~mostly_set);
      case Reduction::Land: return once_in_ranks(bits) ? T{0} : static_cast<T>(bits | 1);
      case Reduction::Lor: return once_in_ranks(bits) ? static_cast<T>(bits | 1) : T{0};
      default: return static_cast<T>(bits);
    }
  }

  uint8_t boolean(uint64_t bits) const {
    switch (pattern_.reduction) {
      case Reduction::Prod:
      case Reduction::Min:
      case Reduction::Band:
      case Reduction::Land: return once_in_ranks(bits) ? 0 : 1;
      case Reduction::Bxor: return static_cast<uint8_t>(bits & 1);
      default: return once_in_ranks(bits) ? 1 : 0;
    }
  }

  double real(size_t index, uint64_t bits) const {
    switch (pattern_.reduction) {
      case Reduction::Max:
      case Reduction::Min: return up_to(limit_, bits);
      case Reduction::Prod: return (bits >> 63) != 0 ? -factor(index, bits) : factor(index, bits);
      default: return summand(index, bits);
    }
  }

  Complex complex(size_t index, uint64_t bits) const {
    if (pattern_.reduction != Reduction::Prod) return {summand(index, bits), summand(index, std::rotl(bits, 32))};
    constexpr Complex kUnits[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    const double size = factor(index, bits);
    const Complex unit = kUnits[bits >> 62];
    return {unit.real * size, unit.imaginary * size};
  }

  // The position of this rank among the ranks at this element: 0 .. ranks-1, distinct per rank.
  uint64_t turn(size_t index) const { return (rank_ + index) % ranks_; }

  // True once in `ranks`: a logical "and" over ranks whose values are false that often varies.
  bool once_in_ranks(uint64_t bits) const { return below(ranks_, bits) == 0; }

  static double up_to(int64_t most, uint64_t bits) {
    return static_cast<double>(static_cast<int64_t>(below(static_cast<uint64_t>(2 * most + 1), bits)) - most);
  }

  // An integer; over all ranks the absolute values sum to at most `limit_`.
  double summand(size_t index, uint64_t bits) const {
    if (ranks_ > static_cast<uint64_t>(limit_) && turn(index) >= static_cast<uint64_t>(limit_)) return 0;
    return up_to(most_, bits);
  }

  // At most six ranks per element contribute more than a sign, so that no partial product is subnormal or too large.
  double factor(size_t index, uint64_t bits) const {
    constexpr double kFactors[] = {1, 2, 0.5, 1};
    const uint64_t place = turn(index);
    if (place == 0) return 1.5;
    return place < 6 ? kFactors[bits & 3] : 1;
  }

  Pattern pattern_;
  Randomness random_;
  uint64_t rank_;
  uint64_t ranks_;
  int64_t limit_;
  int64_t most_;
};

}  // namespace ccom::bench
