// SPDX-License-Identifier: Apache-2.0
//
// The pictures of examples/data/digits.csv, and how they are divided.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/launch/outcome.h"

namespace ccom::digits {

inline constexpr size_t kPixels = 64;
inline constexpr size_t kClasses = 10;

struct Picture {
  std::array<float, kPixels> pixels{};  // 0 .. 1
  size_t digit = 0;
};

// Every fifth picture is for the test, the others are for the training: the same split on every run and rank.
struct Digits {
  std::vector<Picture> training;
  std::vector<Picture> test;
};
launch::Outcome read_digits(const std::string& path, Digits* digits);

// The numbers 0 .. count-1 in an order that depends on the seed only.
std::vector<size_t> shuffled(size_t count, uint64_t seed);

// A random number from `state`, which is advanced. Portable.
uint64_t next_random(uint64_t& state);

}  // namespace ccom::digits
