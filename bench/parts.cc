// SPDX-License-Identifier: Apache-2.0
#include "bench/parts.h"

#include <array>

namespace ccom::bench {
namespace {

struct SkewRow {
  Skew skew;
  std::string_view name;
};
constexpr std::array kSkews = {SkewRow{Skew::None, "none"}, SkewRow{Skew::Linear, "linear"}, SkewRow{Skew::One, "one"}};
constexpr std::array kAllSkews = {Skew::None, Skew::Linear, Skew::One};

}  // namespace

std::span<const Skew> all_skews() { return kAllSkews; }
std::string_view name_of(Skew skew) { return kSkews[static_cast<size_t>(skew)].name; }
std::optional<Skew> skew_named(std::string_view name) {
  for (const SkewRow& row : kSkews) {
    if (row.name == name) return row.skew;
  }
  return std::nullopt;
}

size_t Parts::before(size_t parts) const {
  if (skew_ == Skew::None) return parts * count_;
  if (skew_ == Skew::One) return parts < ranks_ ? 0 : total();
  const size_t all = ranks_ * (ranks_ + 1) / 2;
  const size_t share = parts * (parts + 1) / 2;
  // total() * share / all, whose product might not fit.
  return total() / all * share + total() % all * share / all;
}

size_t Parts::around(size_t first, size_t many) const {
  const size_t end = first + many;
  return end <= ranks_ ? before(end) - before(first) : total() - before(first) + before(end - ranks_);
}

size_t Parts::sent_begin(int from, int to) const { return around(turn(from, 0), static_cast<size_t>(to)); }

// From rank 0 on the numbers of parts fall.
size_t Parts::received_begin(int from, int to) const {
  const auto many = static_cast<size_t>(from);
  return around((static_cast<size_t>(to) + 1 + ranks_ - many) % ranks_, many);
}

}  // namespace ccom::bench
