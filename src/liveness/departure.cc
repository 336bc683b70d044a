// SPDX-License-Identifier: Apache-2.0
#include "liveness/departure.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace ccom {
namespace {

constexpr int kRankBits = 24;
constexpr size_t kEncodedBytes = sizeof(uint64_t) + sizeof(Departure::history);
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

// The word and the history, little-endian.
std::vector<std::byte> encode_departure(const Departure& departure) {
  const uint64_t word = to_word(departure);
  std::vector<std::byte> bytes(kEncodedBytes);
  std::memcpy(bytes.data(), &word, sizeof word);
  std::memcpy(bytes.data() + sizeof word, &departure.history, sizeof departure.history);
  return bytes;
}

std::optional<Departure> decode_departure(ConstBytes bytes) {
  uint64_t word = 0;
  if (bytes.size() != kEncodedBytes) return std::nullopt;
  std::memcpy(&word, bytes.data(), sizeof word);
  std::optional<Departure> departure = departure_from_word(word);
  if (departure) std::memcpy(&departure->history, bytes.data() + sizeof word, sizeof departure->history);
  return departure;
}

}  // namespace ccom
