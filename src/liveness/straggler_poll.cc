// SPDX-License-Identifier: Apache-2.0
#include "liveness/straggler_poll.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace ccom {

StragglerReport least_of(const StragglerReport& a, const StragglerReport& b) {
  const bool is_asked_for = a.is_asked_for || b.is_asked_for;
  if (a.calls != b.calls) {
    StragglerReport fewer = a.calls < b.calls ? a : b;
    fewer.is_asked_for = is_asked_for;
    return fewer;
  }
  StragglerReport both{a.calls, {}, is_asked_for};
  std::ranges::set_union(a.ranks, b.ranks, std::back_inserter(both.ranks));
  both.ranks.resize(std::min(both.ranks.size(), StragglerReport::kMost));
  return both;
}

// u64 calls << 1 | is_asked_for, i32 ranks; little-endian.
std::vector<std::byte> encode_report(const StragglerReport& report) {
  const size_t ranks_bytes = std::min(report.ranks.size(), StragglerReport::kMost) * sizeof(Rank);
  std::vector<std::byte> bytes(sizeof report.calls + ranks_bytes);
  const uint64_t word = report.calls << 1 | (report.is_asked_for ? 1 : 0);
  std::memcpy(bytes.data(), &word, sizeof word);
  if (ranks_bytes > 0) std::memcpy(bytes.data() + sizeof report.calls, report.ranks.data(), ranks_bytes);
  return bytes;
}

std::optional<StragglerReport> decode_report(ConstBytes bytes) {
  StragglerReport report;
  if (bytes.size() < sizeof report.calls) return std::nullopt;
  const size_t ranks_bytes = bytes.size() - sizeof report.calls;
  if (ranks_bytes % sizeof(Rank) != 0 || ranks_bytes / sizeof(Rank) > StragglerReport::kMost) return std::nullopt;
  uint64_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  report.calls = word >> 1;
  report.is_asked_for = (word & 1) != 0;
  report.ranks.resize(ranks_bytes / sizeof(Rank));
  if (ranks_bytes > 0) std::memcpy(report.ranks.data(), bytes.data() + sizeof report.calls, ranks_bytes);
  if (!std::ranges::is_sorted(report.ranks)) return std::nullopt;
  return report;
}

bool StragglerPoll::is_on() const {
  return own_.is_asked_for || std::ranges::any_of(received_, &StragglerReport::is_asked_for);
}

// When nobody asks any more, neighbours are told so.
std::optional<StragglerReport> StragglerPoll::update_for(size_t index) {
  StragglerReport update = is_on() ? without(index) : StragglerReport();
  if (sent_[index] == update) return std::nullopt;
  return sent_[index] = std::move(update);
}

StragglerReport StragglerPoll::result() const { return without(received_.size()); }

StragglerReport StragglerPoll::without(size_t index) const {
  StragglerReport least = own_;
  for (size_t i = 0; i < received_.size(); ++i)
    if (i != index) least = least_of(least, received_[i]);
  return least;
}

}  // namespace ccom
