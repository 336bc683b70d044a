// SPDX-License-Identifier: Apache-2.0
#include "liveness/departure.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace ccom {
namespace {

constexpr int kRankBits = 24;
constexpr uint64_t kMostCalls = (uint64_t{1} << (64 - kRankBits)) - 2;  // so that no word is 0

}  // namespace

uint64_t to_word(const Departure& departure) {
  CCOM_ASSERT(departure.rank >= 0 && departure.rank < Rank{1} << kRankBits);
  return ~(std::min(departure.calls, kMostCalls) << kRankBits | static_cast<uint64_t>(departure.rank));
}

std::optional<Departure> departure_from_word(uint64_t word) {
  const uint64_t calls = ~word >> kRankBits;
  if (calls > kMostCalls) return std::nullopt;  // 0, and what to_word() never gives
  return Departure{calls, static_cast<Rank>(~word & ((uint64_t{1} << kRankBits) - 1))};
}

// The word, little-endian.
std::vector<std::byte> encode_departure(const Departure& departure) {
  const uint64_t word = to_word(departure);
  std::vector<std::byte> bytes(sizeof word);
  std::memcpy(bytes.data(), &word, sizeof word);
  return bytes;
}

std::optional<Departure> decode_departure(ConstBytes bytes) {
  uint64_t word = 0;
  if (bytes.size() != sizeof word) return std::nullopt;
  std::memcpy(&word, bytes.data(), sizeof word);
  return departure_from_word(word);
}

}  // namespace ccom
