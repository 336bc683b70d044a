// SPDX-License-Identifier: Apache-2.0
#include "plan/online_choice.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace ccom {
namespace {

// Of the best one's time, that a way costs more which has not been tried.
constexpr double kFirstGuess = 0.5;
constexpr double kCallsPerTry = OnlineChoice::kFirstCalls + 1;

}  // namespace

OnlineChoice::OnlineChoice(size_t ways, size_t first) : ways_(ways), best_(first), last_(first), is_settled_(ways < 2) {
  CCOM_ASSERT(first < ways);
}

// The median is that of whole turns, or of what there is in the first one.
void OnlineChoice::Way::add(double value) {
  ns[tried % kTries] = value;
  ++tried;
  if (tried > kTries && tried % kTries != 0) return;
  std::array<double, kTries> sorted = ns;
  const auto count = static_cast<ptrdiff_t>(std::min(tried, kTries));
  std::nth_element(sorted.begin(), sorted.begin() + count / 2, sorted.begin() + count);
  median_ns = sorted[static_cast<size_t>(count / 2)];
  if (tried == 2 * kTries) tried = kTries;
}

// After a whole turn of tries: whether it is faster than the best one for certain. If that is not certain yet, it is
// tried for another turn.
bool OnlineChoice::Way::wins(double best_ns) {
  std::array<double, kTries> sorted = ns;
  std::ranges::sort(sorted);
  if (median_ns * kGain >= best_ns || sorted[kWins - 1] >= best_ns) return false;
  if (sorted[kWins - 1] <= kNoisy * sorted[0]) return true;
  if (std::exchange(has_won, true)) return true;
  tried = 0;
  return false;
}

// The next one in turn that is worth it and paid for.
std::optional<size_t> OnlineChoice::to_try() const {
  const double best = best_ns();
  for (size_t k = 0; k < ways_.size(); ++k) {
    const size_t index = (turn_ + k) % ways_.size();
    const Way& way = ways_[index];
    if (index == best_ || way.is_hopeless || way.tried == kTries) continue;
    const double more = way.tried == 0 ? kFirstGuess * best : std::max(way.median_ns - best, 0.0);
    if (lost_ns_ + kCallsPerTry * more <= kShare * total_ns_) return index;
  }
  return std::nullopt;
}

OnlineChoice::Next OnlineChoice::next() {
  ++asked_;
  const size_t way = take_turn();
  in_a_row_ = std::exchange(last_, way) == way ? in_a_row_ + 1 : 0;
  const bool is_timed = in_a_row_ >= kFirstCalls && wants_time(way);
  if (!is_timed) total_ns_ += best_ns();
  is_under_way_ |= is_timed && way == trying_;
  return {way, is_timed};
}

size_t OnlineChoice::take_turn() {
  if (is_settled_ || is_under_way_) return best_;
  if (!trying_ && !has_tried_ && recent_.tried >= kTries) trying_ = to_try();
  if (!trying_) return best_;
  turn_ = *trying_;  // until enough is known about it
  return *trying_;
}

bool OnlineChoice::wants_time(size_t way) const {
  if (way != best_) return true;
  if (!is_settled_ && (is_under_way_ || has_tried_ || recent_.tried < kTries)) return true;
  return unlike_ > 0 || (ways_.size() > 1 && asked_ % (is_settled_ ? kWatched : kSampled) == 0);
}

void OnlineChoice::forget() {
  trying_.reset();
  is_under_way_ = false;
}

void OnlineChoice::add(size_t way, double ns) {
  total_ns_ += ns;
  if (way == best_) {
    recent_.add(ns);
    if (recent_.tried == kTries) turns_.add(recent_.median_ns);
    has_tried_ = false;
    if (is_settled_) watch(ns);
    return;
  }
  if (trying_ != way) return;  // from before the ways were tried again
  forget();
  has_tried_ = true;
  Way& tried = ways_[way];
  tried.add(ns);
  const double best = best_ns();
  lost_ns_ += kCallsPerTry * std::max(ns - best, 0.0);
  const double least = *std::min_element(tried.ns.begin(), tried.ns.begin() + tried.tried);
  tried.is_hopeless = tried.tried >= kFewTries && least > kHopeless * best;
  if (tried.tried == kTries && tried.wins(turns_.median_ns)) adopt(way);
  const auto is_known = [](const Way& known) { return known.is_hopeless || known.tried == kTries; };
  is_settled_ =
      std::ranges::all_of(ways_, [&](const Way& known) { return &known == &ways_[best_] || is_known(known); });
  if (is_settled_) settled_ns_ = best_ns();
}

// It is the best one from now on; the one before keeps what is known of it.
void OnlineChoice::adopt(size_t way) {
  ways_[best_] = recent_;
  ways_[best_].tried = kTries;
  recent_ = ways_[way];
  turns_ = {};
  turns_.add(recent_.median_ns);
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
  recent_ = turns_ = {};
  unlike_ = 0;
  total_ns_ = lost_ns_ = 0;
  is_settled_ = false;
}

}  // namespace ccom
