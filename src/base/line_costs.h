// SPDX-License-Identifier: Apache-2.0
//
// What it takes to pass bytes from one core of a host to another through memory that is used again and again, by what
// the two do with its cache lines.
#pragma once

namespace ccom {

// Nanoseconds a byte, for the one that stores and the one that loads together. 0: not known.
struct LineCosts {
  double plain_ns = 0;
  double claimed_ns = 0;   // who has loaded a line stores to it, and so has it alone (NodeChoice::claims_lines)
  double streamed_ns = 0;  // stored past the caches
  friend bool operator==(const LineCosts&, const LineCosts&) = default;
};

}  // namespace ccom
