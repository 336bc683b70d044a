// SPDX-License-Identifier: Apache-2.0
//
// The first departure: of the ranks that have left the communicator in order, the one that had made the fewest calls.
//
// Every rank makes every collective call, so a rank that has begun a later call than that waits for one that will never
// come. One value is enough for all ranks of the job: departures after as many calls change nothing, and at the end of
// a job, when everybody leaves after the same call, one is told to all hosts and the others to nobody.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.h"

namespace ccom {

struct Departure {
  uint64_t calls = 0;  // made before
  Rank rank = -1;
  uint16_t history = 0;  // a digest of what those calls were; 0: not known
  friend auto operator<=>(const Departure&, const Departure&) = default;  // NOLINT(modernize-use-nullptr): of its own
};

// Whether two ranks have left after different calls.
constexpr bool are_different(const Departure& a, const Departure& b) {
  return a.calls != b.calls || (a.history != 0 && b.history != 0 && a.history != b.history);
}

// As one word of which the greatest is the first departure; never 0, which stands for none. Without the history. Calls
// above 2^40 and ranks above 2^24 do not occur.
uint64_t to_word(const Departure& departure);
std::optional<Departure> departure_from_word(uint64_t word);

std::vector<std::byte> encode_departure(const Departure& departure);
// Empty unless the bytes are exactly one well-formed departure.
std::optional<Departure> decode_departure(ConstBytes bytes);

}  // namespace ccom
