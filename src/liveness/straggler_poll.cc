// SPDX-License-Identifier: Apache-2.0
#include "liveness/straggler_poll.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

namespace ccom {

namespace {

// As encoded.
constexpr size_t kHeaderBytes = sizeof(uint64_t) + sizeof(uint32_t);
constexpr size_t kBegunBytes = 4 * sizeof(uint64_t) + sizeof(Rank) + sizeof(uint32_t);

std::vector<BegunCall> unite(const std::vector<BegunCall>& a, const std::vector<BegunCall>& b) {
  std::vector<BegunCall> both;
  std::ranges::merge(a, b, std::back_inserter(both));
  std::vector<BegunCall> kept;
  for (const BegunCall& begun : both) {
    const bool is_known = !kept.empty() && kept.back().call == begun.call;
    const bool is_third = kept.size() >= 2 && kept[kept.size() - 2].call.number == begun.call.number;
    if (is_known) kept.back().ranks += begun.ranks;
    if (!is_known && !is_third && kept.size() < StragglerReport::kMostBegun) kept.push_back(begun);
  }
  return kept;
}

template <typename T>
void put(std::vector<std::byte>& bytes, const T* values, size_t count) {
  const auto* const first = reinterpret_cast<const std::byte*>(values);
  bytes.insert(bytes.end(), first, first + count * sizeof(T));
}

template <typename T>
void take(ConstBytes& bytes, T* values, size_t count) {
  if (count > 0) std::memcpy(values, bytes.data(), count * sizeof(T));
  bytes = bytes.subspan(count * sizeof(T));
}

}  // namespace

std::optional<std::pair<BegunCall, BegunCall>> StragglerReport::find_difference() const {
  const auto differ = [](const BegunCall& a, const BegunCall& b) {
    return a.call.number == b.call.number && a.call != b.call;
  };
  const auto found = std::ranges::adjacent_find(begun, differ);
  if (found == begun.end()) return std::nullopt;
  return std::pair(*found, *std::next(found));
}

StragglerReport merge(const StragglerReport& a, const StragglerReport& b) {
  StragglerReport both{std::min(a.calls, b.calls), {}, a.is_asked_for || b.is_asked_for, unite(a.begun, b.begun)};
  if (a.calls == b.calls) {
    std::ranges::set_union(a.ranks, b.ranks, std::back_inserter(both.ranks));
    both.ranks.resize(std::min(both.ranks.size(), StragglerReport::kMost));
  } else {
    both.ranks = a.calls < b.calls ? a.ranks : b.ranks;
  }
  return both;
}

// u64 calls << 1 | is_asked_for, u32 number of ranks, i32 ranks, {u64 number, u64 count, u64 kind,
// u64 results, i32 rank, u32 ranks} begun;
// little-endian.
std::vector<std::byte> encode_report(const StragglerReport& report) {
  const auto ranks = static_cast<uint32_t>(std::min(report.ranks.size(), StragglerReport::kMost));
  const uint64_t word = report.calls << 1 | (report.is_asked_for ? 1 : 0);
  std::vector<std::byte> bytes;
  put(bytes, &word, 1);
  put(bytes, &ranks, 1);
  put(bytes, report.ranks.data(), ranks);
  for (const BegunCall& begun : report.begun) {
    const std::array words{begun.call.number, begun.call.count, begun.call.kind, begun.call.results};
    put(bytes, words.data(), words.size());
    put(bytes, &begun.rank, 1);
    put(bytes, &begun.ranks, 1);
  }
  return bytes;
}

std::optional<StragglerReport> decode_report(ConstBytes bytes) {
  StragglerReport report;
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  uint64_t word = 0;
  uint32_t ranks = 0;
  take(bytes, &word, 1);
  take(bytes, &ranks, 1);
  report.calls = word >> 1;
  report.is_asked_for = (word & 1) != 0;
  if (ranks > StragglerReport::kMost || bytes.size() < ranks * sizeof(Rank)) return std::nullopt;
  report.ranks.resize(ranks);
  take(bytes, report.ranks.data(), ranks);
  if (bytes.size() % kBegunBytes != 0 || bytes.size() / kBegunBytes > StragglerReport::kMostBegun) return std::nullopt;
  while (!bytes.empty()) {
    BegunCall& begun = report.begun.emplace_back();
    std::array<uint64_t, 4> words{};
    take(bytes, words.data(), words.size());
    take(bytes, &begun.rank, 1);
    take(bytes, &begun.ranks, 1);
    begun.call = {words[0], words[1], words[2], words[3]};
  }
  if (!std::ranges::is_sorted(report.ranks) || !std::ranges::is_sorted(report.begun)) return std::nullopt;
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
  StragglerReport all = own_;
  for (size_t i = 0; i < received_.size(); ++i)
    if (i != index) all = merge(all, received_[i]);
  return all;
}

}  // namespace ccom
