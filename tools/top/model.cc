// SPDX-License-Identifier: Apache-2.0
#include "tools/top/model.h"

#include <algorithm>

#include "tools/jobs/words.h"

namespace ccom {
namespace {

constexpr size_t kMostSamples = 600;

// In that order, `by` places behind the one that is_it(), or the first; null: there is none.
template <typename T, typename Is>
const T* next_of(const std::vector<T>& all, Is is_it, int by) {
  if (all.empty()) return nullptr;
  const auto at = std::ranges::find_if(all, is_it);
  if (at == all.end()) return &all.front();
  const auto index = static_cast<int64_t>(at - all.begin()) + by;
  return &all[static_cast<size_t>(std::clamp<int64_t>(index, 0, static_cast<int64_t>(all.size()) - 1))];
}

}  // namespace

void TopModel::add(HostSeen seen) {
  if (is_paused_) return;
  if (seen_.at_ns != 0) rates_.emplace(seen_, seen);
  seen_ = std::move(seen);
  health_ = judge(seen_, late_seconds_);
  remember();
  if (selected() == nullptr && view_ != View::Links && view_ != View::Help) view_ = View::Communicators;
}

// Of ranks that are gone nothing is kept.
void TopModel::remember() {
  std::map<Place, std::deque<Sample>> kept;
  for (const CommunicatorSeen& communicator : seen_.communicators) {
    for (const RankSeen& rank : communicator.seen) {
      const Place place{communicator.number, rank.activity.rank};
      std::deque<Sample>& samples = kept[place];
      if (const auto known = history_.find(place); known != history_.end()) samples = std::move(known->second);
      const std::optional<Rate> rate = rates_ ? rates_->of(place.first, place.second) : std::nullopt;
      if (!rate) continue;
      samples.push_front({static_cast<double>(seen_.at_ns) * 1e-9, *rate, does(rank.activity)});
      if (samples.size() > kMostSamples) samples.pop_back();
    }
  }
  history_ = std::move(kept);
}

void TopModel::press(Key key) {
  switch (key) {
    case Key::Up: return move(-1);
    case Key::Down: return move(1);
    case Key::Pause: is_paused_ = !is_paused_; return;
    case Key::Sort: order_ = static_cast<Order>((static_cast<int>(order_) + 1) % 5); return;
    case Key::Links: view_ = view_ == View::Links ? View::Communicators : View::Links; return;
    case Key::Help:
      if (view_ != View::Help) before_help_ = view_;
      view_ = view_ == View::Help ? before_help_ : View::Help;
      return;
    case Key::Enter:
      if (selected() == nullptr) return;
      if (view_ == View::Ranks) view_ = View::History;
      if (view_ == View::Communicators) view_ = View::Ranks;
      if (selected()->find(rank_) == nullptr) rank_ = ranks_of(*selected()).front()->activity.rank;
      return;
    case Key::Back: view_ = view_ == View::History ? View::Ranks : View::Communicators; return;
  }
}

void TopModel::move(int by) {
  const CommunicatorSeen* const current = selected();
  if (current == nullptr) return;
  if (view_ == View::Communicators) {
    const auto* next = next_of(
        seen_.communicators, [&](const CommunicatorSeen& each) { return &each == current; }, by);
    communicator_ = next->number;
  } else if (view_ == View::Ranks || view_ == View::History) {
    const std::vector<const RankSeen*> ranks = ranks_of(*current);
    const auto* next = next_of(
        ranks, [&](const RankSeen* each) { return each->activity.rank == rank_; }, by);
    if (next != nullptr) rank_ = (*next)->activity.rank;
  }
}

// The first one unless another one is chosen.
const CommunicatorSeen* TopModel::selected() const {
  const auto found = std::ranges::find(seen_.communicators, communicator_, &CommunicatorSeen::number);
  if (found != seen_.communicators.end()) return &*found;
  return seen_.communicators.empty() ? nullptr : &seen_.communicators.front();
}

std::vector<const RankSeen*> TopModel::ranks_of(const CommunicatorSeen& communicator) const {
  std::vector<const RankSeen*> ranks;
  for (const RankSeen& rank : communicator.seen) ranks.push_back(&rank);
  if (order_ == Order::ByRank || !rates_) return ranks;
  std::ranges::stable_sort(ranks, std::greater<>(), [&](const RankSeen* rank) {
    const Rate rate = rates_->of(communicator.number, rank->activity.rank).value_or(Rate());
    switch (order_) {
      case Order::ByCalls: return rate.calls;
      case Order::ByBytes: return rate.bytes;
      case Order::ByShare: return rate.in_calls;
      default: return rate.waited;
    }
  });
  return ranks;
}

}  // namespace ccom
