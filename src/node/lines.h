// SPDX-License-Identifier: Apache-2.0
//
// Cache lines that pass from core to core.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/measured_costs.h"

namespace ccom {

inline constexpr size_t kLineBytes = 64;

// Stores to a byte of every line of a stretch that nobody will read any more: the caller's cache has those lines alone
// afterwards, and the next one to store to them takes them from there.
inline void claim_lines(std::byte* begin, size_t size_bytes) {
  if (size_bytes == 0) return;
  begin[0] = {};
  const size_t head = -reinterpret_cast<uintptr_t>(begin) % kLineBytes;
  for (size_t at = head; at < size_bytes; at += kLineBytes) begin[at] = {};
}

inline constexpr size_t kLineProbe = size_t{36} << 10;  // bytes; it begins on a page

// Measures LineCosts between two ranks, in memory that both have mapped, zero at first, and that nobody else touches
// meanwhile. Both call it at about the same time: one passes bytes to the other, 60 times as many as, together with
// where they come from, do not fit into a first cache. That takes less than a millisecond on cores of their own. The
// first gets the figures; nullopt if the other has not come in time, or is too slow to be worth it. Nothing is waited
// for longer than `patience`.
std::optional<LineCosts> probe_lines(std::byte* memory, bool is_first, std::chrono::nanoseconds patience);

}  // namespace ccom
