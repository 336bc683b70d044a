// SPDX-License-Identifier: Apache-2.0
//
// What a piece of memory holds in the symbolic worlds, and what operations make of it: the same in both verifiers, so
// that what one proves of a stage's end is what the other assumes at the next stage's beginning.
#pragma once

#include <cstdint>
#include <span>

#include "base/types.h"
#include "plan/fingerprint.h"

namespace ccom {

// Ranks whose contributions an expression holds from left to right: first, first + 1, ... last. Otherwise none.
struct RankRun {
  Rank first = -1, last = -1;
  bool is_in_order() const { return first >= 0; }
  friend bool operator==(const RankRun&, const RankRun&) = default;
};

// What is known of the expressions of a reduction's results, or asked of them, besides that all ranks have the same
// ones. Each is more than the one before.
enum class SumOrder : uint8_t {
  Any,
  Ranks,      // contributions from left to right in the order of the ranks, with any grouping
  Canonical,  // all of them at once in that order: ((x0 op x1) op x2) ..., narrow types in float, rounded once
};

struct Value {
  uint64_t sum = 0;         // fingerprint of the contributions
  uint64_t expression = 0;  // hash of the tree of combinations
  uint64_t origin = 0;      // which piece of data it is; pieces with different origins never mix
  int roundings = 0;        // to the call's type or to blocks, on the longest path
  bool completed = false;
  RankRun ranks{};
  UnitType type = UnitType::Call;  // of the elements that hold it
  int encodings = 0;               // as blocks with a scale, on the longest path: of `roundings`
  friend bool operator==(const Value&, const Value&) = default;
};

// A rank's contribution. `word`: below kPrime.
Value leaf(uint64_t word, uint64_t origin, Rank rank);

// Of two values with the same origin, a on the left. But for `ranks` symmetric in the operands: a + b and b + a have
// the same bits. Without a rounding.
Value combine(const Value& a, const Value& b);
// What the combination of `inputs` values in list order becomes once it is stored. A sum of more than two rounds once:
// other bits than the same sums one by one. What is stored as Float32 counts as not rounded.
void round_once(Value& sum, size_t inputs);
// In elements of another type. All but widening to float32 rounds.
void convert_to(Value& value, UnitType type);

// A unit whose pieces hold these, in order; they differ in their origins and perhaps their expressions, not in what
// they contain. `is_whole` becomes false if they do.
Value whole_of(std::span<const Value> pieces, bool& is_whole);

}  // namespace ccom
