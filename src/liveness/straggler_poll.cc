// SPDX-License-Identifier: Apache-2.0
#include "liveness/straggler_poll.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace ccom {

StragglerReport least_of(const StragglerReport& a, const StragglerReport& b) {
  if (a.calls != b.calls) return a.calls < b.calls ? a : b;
  StragglerReport both{a.calls, {}};
  std::ranges::set_union(a.ranks, b.ranks, std::back_inserter(both.ranks));
  both.ranks.resize(std::min(both.ranks.size(), StragglerReport::kMost));
  return both;
}

// u64 calls, i32 ranks; little-endian, as everything that travels.
std::vector<std::byte> encode_behind(const StragglerReport& behind) {
  const size_t ranks_bytes = std::min(behind.ranks.size(), StragglerReport::kMost) * sizeof(Rank);
  std::vector<std::byte> bytes(sizeof behind.calls + ranks_bytes);
  std::memcpy(bytes.data(), &behind.calls, sizeof behind.calls);
  if (ranks_bytes > 0) std::memcpy(bytes.data() + sizeof behind.calls, behind.ranks.data(), ranks_bytes);
  return bytes;
}

std::optional<StragglerReport> decode_behind(ConstBytes bytes) {
  StragglerReport behind;
  if (bytes.size() < sizeof behind.calls) return std::nullopt;
  const size_t ranks_bytes = bytes.size() - sizeof behind.calls;
  if (ranks_bytes % sizeof(Rank) != 0 || ranks_bytes / sizeof(Rank) > StragglerReport::kMost) return std::nullopt;
  std::memcpy(&behind.calls, bytes.data(), sizeof behind.calls);
  behind.ranks.resize(ranks_bytes / sizeof(Rank));
  if (ranks_bytes > 0) std::memcpy(behind.ranks.data(), bytes.data() + sizeof behind.calls, ranks_bytes);
  if (!std::ranges::is_sorted(behind.ranks)) return std::nullopt;
  return behind;
}

void StragglerPoll::set_own(StragglerReport own) {
  is_on_ = true;
  own_ = std::move(own);
}

void StragglerPoll::hear(size_t index, StragglerReport behind) {
  is_on_ = true;
  heard_[index] = std::move(behind);
}

std::optional<StragglerReport> StragglerPoll::news_for(size_t index) {
  if (!is_on_) return std::nullopt;
  StragglerReport news = without(index);
  if (said_[index] == news) return std::nullopt;
  return said_[index] = std::move(news);
}

StragglerReport StragglerPoll::result() const { return without(heard_.size()); }

StragglerReport StragglerPoll::without(size_t index) const {
  StragglerReport least = own_;
  for (size_t i = 0; i < heard_.size(); ++i)
    if (i != index) least = least_of(least, heard_[i]);
  return least;
}

}  // namespace ccom
