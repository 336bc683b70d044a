// SPDX-License-Identifier: Apache-2.0
#include "liveness/straggler_poll.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

namespace ccom {

namespace {

// As encoded.
constexpr size_t kHeaderBytes = sizeof(uint64_t) + 2 * sizeof(uint32_t);
constexpr uint64_t kIsAskedFor = 1, kAsksPlaces = 2;
constexpr int kFlagBits = 2;
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
  both.asks_places = a.asks_places || b.asks_places;
  if (a.calls == b.calls) {
    std::ranges::set_union(a.ranks, b.ranks, std::back_inserter(both.ranks));
    both.ranks.resize(std::min(both.ranks.size(), StragglerReport::kMost));
  } else {
    both.ranks = a.calls < b.calls ? a.ranks : b.ranks;
  }
  return both;
}

// u64 calls << 2 | flags, u32 number of ranks, u32 number of calls begun, i32 ranks, {u64 number, u64 count, u64 kind,
// u64 results, i32 rank, u32 ranks} begun, and activities, unless there are none; little-endian.
std::vector<std::byte> encode_report(const StragglerReport& report, int64_t now_ns) {
  const auto ranks = static_cast<uint32_t>(std::min(report.ranks.size(), StragglerReport::kMost));
  const auto calls_begun = static_cast<uint32_t>(report.begun.size());
  const uint64_t flags = (report.is_asked_for ? kIsAskedFor : 0) | (report.asks_places ? kAsksPlaces : 0);
  const uint64_t word = report.calls << kFlagBits | flags;
  std::vector<std::byte> bytes;
  put(bytes, &word, 1);
  put(bytes, &ranks, 1);
  put(bytes, &calls_begun, 1);
  put(bytes, report.ranks.data(), ranks);
  for (const BegunCall& begun : report.begun) {
    const std::array words{begun.call.number, begun.call.count, begun.call.kind, begun.call.results};
    put(bytes, words.data(), words.size());
    put(bytes, &begun.rank, 1);
    put(bytes, &begun.ranks, 1);
  }
  if (report.activities.empty()) return bytes;
  const std::vector<std::byte> activities = encode_table(report.activities, now_ns);
  put(bytes, activities.data(), activities.size());
  return bytes;
}

std::optional<StragglerReport> decode_report(ConstBytes bytes, int64_t now_ns) {
  StragglerReport report;
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  uint64_t word = 0;
  uint32_t ranks = 0, calls_begun = 0;
  take(bytes, &word, 1);
  take(bytes, &ranks, 1);
  take(bytes, &calls_begun, 1);
  report.calls = word >> kFlagBits;
  report.is_asked_for = (word & kIsAskedFor) != 0;
  report.asks_places = (word & kAsksPlaces) != 0;
  if (ranks > StragglerReport::kMost || bytes.size() < ranks * sizeof(Rank)) return std::nullopt;
  report.ranks.resize(ranks);
  take(bytes, report.ranks.data(), ranks);
  if (calls_begun > StragglerReport::kMostBegun || bytes.size() < calls_begun * kBegunBytes) return std::nullopt;
  for (; calls_begun > 0; --calls_begun) {
    BegunCall& begun = report.begun.emplace_back();
    std::array<uint64_t, 4> words{};
    take(bytes, words.data(), words.size());
    take(bytes, &begun.rank, 1);
    take(bytes, &begun.ranks, 1);
    begun.call = {words[0], words[1], words[2], words[3]};
  }
  if (!std::ranges::is_sorted(report.ranks) || !std::ranges::is_sorted(report.begun)) return std::nullopt;
  if (bytes.empty()) return report;
  auto activities = decode_table(bytes, now_ns);
  if (!activities || activities->empty()) return std::nullopt;
  report.activities = *std::move(activities);
  return report;
}

bool StragglerPoll::is_on() const {
  return own_.is_asked_for || std::ranges::any_of(received_, &StragglerReport::is_asked_for);
}

bool StragglerPoll::is_asked_for_places() const {
  return std::ranges::any_of(received_, &StragglerReport::asks_places);
}

// When nobody asks any more, neighbours are told so.
std::optional<StragglerReport> StragglerPoll::update_for(size_t index, bool tells_activities) {
  StragglerReport update = is_on() ? without(index) : StragglerReport();
  StragglerReport& sent = sent_[index];
  if (!tells_activities) {
    update.activities = sent.activities;
    if (sent == update) return std::nullopt;
  }
  update.activities = is_on() ? activities_without(index) : ActivityTable();
  if (sent == update) return std::nullopt;
  return sent = std::move(update);
}

StragglerReport StragglerPoll::result() const { return without(received_.size()); }

StragglerReport StragglerPoll::without(size_t index) const {
  StragglerReport all = own_;
  for (size_t i = 0; i < received_.size(); ++i)
    if (i != index) all = merge(all, received_[i]);
  all.activities.clear();
  return all;
}

ActivityTable StragglerPoll::activities_without(size_t index) const {
  ActivityTable all = own_.activities;
  for (size_t i = 0; i < received_.size(); ++i)
    if (i != index) all = merge(std::move(all), received_[i].activities);
  return all;
}

ActivityTable StragglerPoll::activities_elsewhere() const {
  ActivityTable all;
  for (const StragglerReport& report : received_) all = merge(std::move(all), report.activities);
  return all;
}

}  // namespace ccom
