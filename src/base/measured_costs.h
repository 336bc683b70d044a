// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a host measure of their processor when they meet.
#pragma once

#include <algorithm>

namespace ccom {

// What it takes to pass bytes from one core of a host to another through memory that is used again and again, by what
// the two do with its cache lines. Nanoseconds a byte, for the one that stores and the one that loads together. 0: not
// known.
struct LineCosts {
  double plain_ns = 0;
  double claimed_ns = 0;   // who has loaded a line stores to it, and so has it alone (NodeChoice::claims_lines)
  double streamed_ns = 0;  // stored past the caches
  friend bool operator==(const LineCosts&, const LineCosts&) = default;
};

// In place of those of MemoryCosts that have the same names. 0: not known.
struct OwnCosts {
  double far_load_ns = 0, far_store_ns = 0, streamed_store_ns = 0;
  double read_call_ns = 0, read_byte_ns = 0;
  friend bool operator==(const OwnCosts&, const OwnCosts&) = default;
};

// Of each figure the lesser one: whatever else runs makes it greater.
inline OwnCosts least(const OwnCosts& a, const OwnCosts& b) {
  const auto of = [](double x, double y) { return x == 0 || y == 0 ? std::max(x, y) : std::min(x, y); };
  return {of(a.far_load_ns, b.far_load_ns), of(a.far_store_ns, b.far_store_ns),
          of(a.streamed_store_ns, b.streamed_store_ns), of(a.read_call_ns, b.read_call_ns),
          of(a.read_byte_ns, b.read_byte_ns)};
}

struct MeasuredCosts {
  LineCosts lines{};
  OwnCosts own{};
  friend bool operator==(const MeasuredCosts&, const MeasuredCosts&) = default;
};

}  // namespace ccom
