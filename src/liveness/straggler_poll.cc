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

// u64 calls, i32 ranks; little-endian.
std::vector<std::byte> encode_report(const StragglerReport& report) {
  const size_t ranks_bytes = std::min(report.ranks.size(), StragglerReport::kMost) * sizeof(Rank);
  std::vector<std::byte> bytes(sizeof report.calls + ranks_bytes);
  std::memcpy(bytes.data(), &report.calls, sizeof report.calls);
  if (ranks_bytes > 0) std::memcpy(bytes.data() + sizeof report.calls, report.ranks.data(), ranks_bytes);
  return bytes;
}

std::optional<StragglerReport> decode_report(ConstBytes bytes) {
  StragglerReport report;
  if (bytes.size() < sizeof report.calls) return std::nullopt;
  const size_t ranks_bytes = bytes.size() - sizeof report.calls;
  if (ranks_bytes % sizeof(Rank) != 0 || ranks_bytes / sizeof(Rank) > StragglerReport::kMost) return std::nullopt;
  std::memcpy(&report.calls, bytes.data(), sizeof report.calls);
  report.ranks.resize(ranks_bytes / sizeof(Rank));
  if (ranks_bytes > 0) std::memcpy(report.ranks.data(), bytes.data() + sizeof report.calls, ranks_bytes);
  if (!std::ranges::is_sorted(report.ranks)) return std::nullopt;
  return report;
}

void StragglerPoll::set_own(StragglerReport own) {
  is_on_ = true;
  own_ = std::move(own);
}

void StragglerPoll::receive(size_t index, StragglerReport report) {
  is_on_ = true;
  received_[index] = std::move(report);
}

std::optional<StragglerReport> StragglerPoll::update_for(size_t index) {
  if (!is_on_) return std::nullopt;
  StragglerReport update = without(index);
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
