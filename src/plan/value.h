// SPDX-License-Identifier: Apache-2.0
//
// What a piece of memory holds in the symbolic worlds, and what operations make of it: the same in both verifiers, so
// that what one proves of a stage's end is what the other assumes at the next stage's beginning.
#pragma once

#include <cstdint>
#include <span>

#include "plan/fingerprint.h"

namespace ccom {

struct Value {
  uint64_t sum = 0;         // fingerprint of the contributions
  uint64_t expression = 0;  // hash of the tree of combinations
  uint64_t origin = 0;      // which piece of data it is; pieces with different origins never mix
  int roundings = 0;        // combinations on the longest path
  bool completed = false;
  friend bool operator==(const Value&, const Value&) = default;
};

// A contribution. `word`: below kPrime.
Value leaf(uint64_t word, uint64_t origin);

// Of two values with the same origin. Symmetric in the operands: a + b and b + a have the same bits. Without a
// rounding.
Value combine(const Value& a, const Value& b);
// What the combination of `inputs` values in list order becomes once it is stored. A sum of more than two rounds once:
// other bits than the same sums one by one.
void round_once(Value& sum, size_t inputs);

// A unit whose pieces hold these, in order; they differ in their origins and perhaps their expressions, not in what
// they contain. `is_whole` becomes false if they do.
Value whole_of(std::span<const Value> pieces, bool& is_whole);

}  // namespace ccom
