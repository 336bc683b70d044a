// SPDX-License-Identifier: Apache-2.0
#include "messages/matcher.h"

namespace ccom {
namespace {

constexpr size_t kMostEmptyQueues = 1024;

}  // namespace

template <typename T>
T Matcher::take_front(Table<T>& table, typename Table<T>::iterator found) {
  T item = std::move(found->second.front().item);
  found->second.pop_front();
  if (found->second.empty() && table.size() > kMostEmptyQueues) table.erase(found);
  return item;
}

std::shared_ptr<Message> Matcher::take_receive(Rank peer, int64_t tag, bool of_call) {
  const auto named = receives_.find({peer, tag, of_call});
  const auto any = receives_.find({kAnyRank, tag, of_call});
  const bool has_named = named != receives_.end() && !named->second.empty();
  const bool has_any = any != receives_.end() && !any->second.empty();
  if (!has_named && !has_any) return nullptr;
  const bool takes_named = has_named && (!has_any || named->second.front().number < any->second.front().number);
  return take_front(receives_, takes_named ? named : any);
}

void Matcher::keep_receive(std::shared_ptr<Message> receive) {
  const Key key{receive->request.peer, receive->request.tag, receive->request.call_type != 0};
  receives_[key].push_back({receives_kept_++, std::move(receive)});
}

std::optional<Arrival> Matcher::take_arrival(Rank peer, int64_t tag, bool of_call) {
  auto earliest = arrivals_.end();
  const Rank first = peer == kAnyRank ? 0 : peer;
  const Rank last = peer == kAnyRank ? nranks_ - 1 : peer;
  for (Rank from = first; from <= last; ++from) {
    const auto found = arrivals_.find({from, tag, of_call});
    if (found == arrivals_.end() || found->second.empty()) continue;
    if (earliest == arrivals_.end() || found->second.front().number < earliest->second.front().number) {
      earliest = found;
    }
  }
  if (earliest == arrivals_.end()) return std::nullopt;
  return take_front(arrivals_, earliest);
}

void Matcher::keep_arrival(Arrival arrival) {
  const Key key{arrival.peer, arrival.tag, arrival.call_type != 0};
  arrivals_[key].push_back({arrivals_kept_++, std::move(arrival)});
}

std::shared_ptr<Message> Matcher::awaiting(Rank peer) const {
  const Numbered<std::shared_ptr<Message>>* earliest = nullptr;
  for (const auto& [key, queue] : receives_) {
    if (key.peer != peer || queue.empty()) continue;
    if (earliest == nullptr || queue.front().number < earliest->number) earliest = &queue.front();
  }
  return earliest == nullptr ? nullptr : earliest->item;
}

void Matcher::clear() {
  receives_.clear();
  arrivals_.clear();
}

}  // namespace ccom
