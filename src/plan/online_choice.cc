// SPDX-License-Identifier: Apache-2.0
#include "plan/online_choice.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/assert.h"

namespace ccom {
namespace {

// Calls of the best way, that one of another way costs more which has not been tried.
constexpr double kFirstGuess = 0.5;
constexpr double kCallsPerTry = OnlineChoice::kFirstCalls + 1;

template <size_t n>
std::array<double, n> sorted(std::array<double, n> values) {
  std::ranges::sort(values);
  return values;
}

}  // namespace

OnlineChoice::OnlineChoice(size_t ways, const ExpectedWays& expected)
    : order_(ways), ways_(ways), best_(expected.first), last_(expected.first), is_settled_(ways < 2) {
  CCOM_ASSERT(expected.first < ways && (expected.prices.empty() || expected.prices.size() >= ways));
  std::iota(order_.begin(), order_.end(), size_t{0});
  if (expected.prices.empty()) return;
  const auto price = [&](size_t way) { return expected.prices[way]; };
  std::ranges::stable_sort(order_, {}, price);
  lower_priced_ = static_cast<size_t>(
      std::ranges::count_if(order_, [&](size_t way) { return price(way) < price(expected.first); }));
}

// The median is that of whole turns, or of what there is in the first one.
void OnlineChoice::Times::add(double value) {
  ns[count % kTries] = value;
  ++count;
  if (count > kTries && count % kTries != 0) return;
  std::array<double, kTries> in_order = ns;
  const auto known = static_cast<ptrdiff_t>(std::min(count, kTries));
  std::nth_element(in_order.begin(), in_order.begin() + known / 2, in_order.begin() + known);
  median_ns = in_order[static_cast<size_t>(known / 2)];
  if (count == 2 * kTries) count = kTries;
}

void OnlineChoice::Way::add(double value, double before, double after) {
  to_faster[count % kTries] = value / std::min(before, after);
  to_mean[count % kTries] = value / ((before + after) / 2);
  Times::add(value);
}

// After a whole turn of tries: whether it is faster than the best one for certain. If that is not certain yet, it is
// tried for another turn.
bool OnlineChoice::Way::wins() {
  const auto are_less = [](const std::array<double, kTries>& ratios) {
    return ratios[kTries / 2] * kGain < 1 && ratios[kWins - 1] < 1;
  };
  const std::array<double, kTries> ratios = sorted(to_faster);
  if (ratios[kWins - 1] <= kNoisy * ratios[0]) return are_less(ratios);
  if (!are_less(sorted(to_mean))) return false;
  if (std::exchange(has_won, true)) return true;
  count = 0;
  return false;
}

// The next one in turn that is worth it and paid for.
std::optional<size_t> OnlineChoice::to_try() const {
  const double earned = kShare * static_cast<double>(asked_ - opened_at_) - lost_calls_;
  for (size_t k = 0; k < order_.size(); ++k) {
    const size_t index = (turn_ + k) % order_.size();
    const Way& way = ways_[order_[index]];
    if (order_[index] == best_ || way.is_hopeless || way.count == kTries) continue;
    const double more = way.count == 0 ? kFirstGuess : std::clamp(way.median_ns / best_ns() - 1, 0.0, kMostCharged);
    if (kCallsPerTry * more <= earned + (index < lower_priced_ ? kFreeCalls : 0)) return index;
  }
  return std::nullopt;
}

OnlineChoice::Next OnlineChoice::next() {
  ++asked_;
  const size_t way = take_turn();
  in_a_row_ = std::exchange(last_, way) == way ? in_a_row_ + 1 : 0;
  const bool is_timed = in_a_row_ >= kFirstCalls && wants_time(way);
  is_under_way_ |= is_timed && way == trying_;
  return {way, is_timed};
}

size_t OnlineChoice::take_turn() {
  if (is_settled_ || is_under_way_) return best_;
  if (!trying_ && !tried_ && recent_.count >= kTries) {
    if (const std::optional<size_t> index = to_try()) {
      turn_ = *index;  // until enough is known about it
      trying_ = order_[*index];
    }
  }
  return trying_.value_or(best_);
}

bool OnlineChoice::wants_time(size_t way) const {
  if (way != best_) return true;
  if (!is_settled_ && (is_under_way_ || tried_ || recent_.count < kTries)) return true;
  return unlike_ > 0 || (ways_.size() > 1 && asked_ % (is_settled_ ? kWatched : kSampled) == 0);
}

void OnlineChoice::forget() {
  trying_.reset();
  is_under_way_ = false;
}

void OnlineChoice::add(size_t way, double ns) {
  if (way == best_) {
    latest_ns_ = ns;
    recent_.add(ns);
    if (tried_) judge(ns);
    if (is_settled_) watch(ns);
    return;
  }
  if (trying_ != way) return;  // from before the ways were tried again
  forget();
  tried_ = {way, ns, latest_ns_};
}

void OnlineChoice::judge(double after) {
  const Try last = *std::exchange(tried_, std::nullopt);
  Way& way = ways_[last.way];
  way.add(last.ns, last.before, after);
  lost_calls_ += kCallsPerTry * std::clamp(last.ns / best_ns() - 1, 0.0, kMostCharged);
  const double least = *std::min_element(way.to_faster.begin(), way.to_faster.begin() + way.count);
  way.is_hopeless = way.count >= kFewTries && least > kHopeless;
  if (way.count == kTries && way.wins()) adopt(last.way);
  const auto is_known = [](const Way& known) { return known.is_hopeless || known.count == kTries; };
  is_settled_ =
      std::ranges::all_of(ways_, [&](const Way& known) { return &known == &ways_[best_] || is_known(known); });
  if (is_settled_) settled_ns_ = best_ns();
}

// It is the best one from now on; the one before keeps what is known of it.
void OnlineChoice::adopt(size_t way) {
  static_cast<Times&>(ways_[best_]) = recent_;
  ways_[best_].count = kTries;
  recent_ = ways_[way];
  latest_ns_ = recent_.ns[(recent_.count - 1) % kTries];
  best_ = way;
  chosen_at_ = asked_;
}

void OnlineChoice::watch(double ns) {
  if (ways_.size() < 2) return;
  const bool is_alike = ns <= kChanged * settled_ns_ && ns * kChanged >= settled_ns_;
  unlike_ = is_alike ? 0 : unlike_ + 1;
  if (unlike_ == kUnlike) reopen();
}

void OnlineChoice::reopen() {
  for (Way& way : ways_) way = {};
  recent_ = {};
  tried_.reset();
  unlike_ = 0;
  lost_calls_ = 0;
  opened_at_ = asked_;
  is_settled_ = false;
}

}  // namespace ccom
