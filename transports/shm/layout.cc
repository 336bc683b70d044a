// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/layout.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"
#include "transports/shm/factory.h"

namespace ccom {
namespace shm {

constexpr uint32_t kLayoutVersion = 2;

size_t Layout::header_bytes() const {
  const size_t bytes = static_cast<size_t>(ranks) * sizeof(RankLines) + rings() * sizeof(RingLines);
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

size_t Layout::ring_index(int from, int to, int channel) const {
  CCOM_ASSERT(from >= 0 && from < ranks && to >= 0 && to < ranks && from != to);
  CCOM_ASSERT(channel >= 0 && channel < channels);
  const int other = to < from ? to : to - 1;
  return static_cast<size_t>((from * (ranks - 1) + other) * channels + channel);
}

RankLines& Layout::rank_lines(std::byte* region, int rank) const { return reinterpret_cast<RankLines*>(region)[rank]; }

RingView Layout::ring(std::byte* region, size_t index) const {
  auto* lines = reinterpret_cast<RingLines*>(region + static_cast<size_t>(ranks) * sizeof(RankLines));
  return {lines + index, region + ring_offset_bytes(index), ring_bytes};
}

uint32_t Layout::fingerprint() const {
  uint64_t hash = kLayoutVersion;
  for (const uint64_t word : {static_cast<uint64_t>(ranks), static_cast<uint64_t>(channels), uint64_t{ring_bytes}}) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return static_cast<uint32_t>(hash) | 1;
}

}  // namespace shm
}  // namespace ccom
