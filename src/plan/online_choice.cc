// SPDX-License-Identifier: Apache-2.0
#include "plan/online_choice.h"

#include <algorithm>

#include "base/assert.h"

namespace ccom {
namespace {

// Of the best one's time, that a way costs more which has not been tried.
constexpr double kFirstGuess = 0.5;

}  // namespace

OnlineChoice::OnlineChoice(size_t ways) : ways_(ways), is_settled_(ways < 2) { CCOM_ASSERT(ways > 0); }

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

// The next one in turn that is worth it and paid for.
std::optional<size_t> OnlineChoice::to_try() const {
  const double best = best_ns();
  for (size_t k = 0; k < ways_.size(); ++k) {
    const size_t index = (turn_ + k) % ways_.size();
    const Way& way = ways_[index];
    if (index == best_ || way.is_hopeless || way.tried == kTries) continue;
    const double more = way.tried == 0 ? kFirstGuess * best : std::max(way.median_ns - best, 0.0);
    if (lost_ns_ + more <= kShare * total_ns_) return index;
  }
  return std::nullopt;
}

size_t OnlineChoice::next() {
  if (is_settled_ || trying_ || recent_.tried < kTries) return best_;
  trying_ = to_try();
  if (!trying_) return best_;
  turn_ = *trying_ + 1;
  return *trying_;
}

void OnlineChoice::forget() { trying_.reset(); }

void OnlineChoice::add(size_t way, double ns) {
  total_ns_ += ns;
  if (way == best_) {
    recent_.add(ns);
    if (is_settled_) watch(ns);
    return;
  }
  if (trying_ != way) return;  // from before the ways were tried again
  trying_.reset();
  Way& tried = ways_[way];
  tried.add(ns);
  const double best = best_ns();
  lost_ns_ += std::max(ns - best, 0.0);
  const double least = *std::min_element(tried.ns.begin(), tried.ns.begin() + tried.tried);
  tried.is_hopeless = tried.tried >= kFewTries && least > kHopeless * best;
  settle();
}

// Once every way has been tried.
void OnlineChoice::settle() {
  size_t fastest = best_;
  double fastest_ns = best_ns() / kGain;
  for (size_t i = 0; i < ways_.size(); ++i) {
    const Way& way = ways_[i];
    if (i == best_ || way.is_hopeless) continue;
    if (way.tried < kTries) return;
    if (way.median_ns < fastest_ns) {
      fastest = i;
      fastest_ns = way.median_ns;
    }
  }
  if (fastest != best_) recent_ = ways_[fastest];
  best_ = fastest;
  settled_ns_ = best_ns();
  is_settled_ = true;
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
  unlike_ = 0;
  total_ns_ = lost_ns_ = 0;
  is_settled_ = false;
}

}  // namespace ccom
