// SPDX-License-Identifier: Apache-2.0
#include "node/call_choices.h"

#include <algorithm>

#include "plan/fingerprint.h"

namespace ccom {

// Most calls have buffers like the one before; hear() says whether that was right.
size_t CallChoices::begin(Kind kind, const NodeTask& task, const std::vector<NodeChoice>& ways) {
  kind.ways = ways.size();
  now_ = {};
  calls_ = nullptr;
  is_timed_ = false;
  if (ways.size() < 2) return 0;
  if (latest_ == kinds_.end() || latest_->first != kind) latest_ = kinds_.find(kind);
  if (latest_ == kinds_.end()) {
    if (kinds_.size() == kMostKinds) make_room();
    latest_ = kinds_.try_emplace(kind, Calls{.ways = ways}).first;
  }
  calls_ = &latest_->second;
  calls_->used = ++begun_;
  task_ = &task;
  if (calls_->by_buffers.empty()) return expected(kind, task, ways).first;
  OnlineChoice& choice = *calls_->by_buffers.front().second;
  if (!tries_) return choice.best();
  const OnlineChoice::Next next = choice.next();
  is_timed_ = next.is_timed;
  now_ = {is_timed_ ? &choice : nullptr, next.way};
  return next.way;
}

ExpectedWays CallChoices::expected(Kind kind, const NodeTask& task, const std::vector<NodeChoice>& ways,
                                   std::optional<uint64_t> buffers) const {
  if (ways.size() < 2) return {};
  kind.ways = ways.size();
  ExpectedWays here = expect_ ? expect_(kind, task, ways, buffers) : ExpectedWays();
  const OnlineChoice* const known = neighbour(kind, ways, buffers);
  const bool has_found = known != nullptr && (known->chosen_at() > 0 || known->is_settled());
  if (!has_found) return here;
  here.first = known->best();
  // Those that prices favour were tried there.
  if (!here.prices.empty()) here.prices[here.first] = std::ranges::min(here.prices);
  return here;
}

// Of the kinds that differ from that one in the number of bytes alone, which has the same power of two, the one with
// most calls on such buffers; on any, as long as they are not known. Null: there is none.
const OnlineChoice* CallChoices::neighbour(const Kind& of, const std::vector<NodeChoice>& ways,
                                           std::optional<uint64_t> buffers) const {
  const uint64_t most = std::bit_ceil(of.bytes);
  const OnlineChoice* found = nullptr;
  for (auto at = kinds_.upper_bound({.words = of.words, .bytes = most / 2, .given = UINT64_MAX});
       at != kinds_.end() && at->first.words == of.words && at->first.bytes <= most; ++at) {
    const auto& [kind, calls] = *at;
    if (kind.bytes == of.bytes || kind.given != of.given || kind.collective != of.collective) continue;
    const auto known = buffers ? std::ranges::find(calls.by_buffers, *buffers, &ByBuffers::value_type::first)
                               : calls.by_buffers.begin();
    if (known == calls.by_buffers.end() || (found != nullptr && known->second->asked() <= found->asked())) continue;
    if (calls.ways == ways) found = known->second.get();  // last: it takes the longest
  }
  return found;
}

size_t CallChoices::look_up(Kind kind, const NodeTask& task, const std::vector<NodeChoice>& ways) {
  kind.ways = ways.size();
  now_ = {};
  calls_ = nullptr;
  is_timed_ = false;
  const auto known = kinds_.find(kind);
  if (known == kinds_.end() || known->second.by_buffers.empty()) return expected(kind, task, ways).first;
  return known->second.by_buffers.front().second->best();
}

// The call before this one, whose time is still to be heard, is among the latest.
void CallChoices::make_room() {
  std::vector<uint64_t> used;
  used.reserve(kinds_.size());
  for (const auto& [kind, calls] : kinds_) used.push_back(calls.used);
  const auto middle = used.begin() + static_cast<ptrdiff_t>(used.size() / 2);
  std::ranges::nth_element(used, middle);
  std::erase_if(kinds_, [least = *middle](const auto& known) { return known.second.used < least; });
}

void CallChoices::Heard::add(const Said& said) {
  begin_ns = std::max(begin_ns, said.begin_ns);
  end_ns = std::max(end_ns, said.begin_ns + static_cast<int64_t>(said.took_ns));
  mixed = mix(mixed ^ said.buffers);
  is_any_mapped |= said.buffers != 0;
}

void CallChoices::hear(const Heard& heard) {
  const uint64_t buffers = heard.buffers();
  if (last_.choice != nullptr) last_.choice->add(last_.way, static_cast<double>(heard.end_ns - heard.begin_ns));
  last_ = {};
  if (calls_ == nullptr) return;
  if (calls_->is_latest(buffers)) return;
  ByBuffers& known = calls_->by_buffers;
  if (now_.choice != nullptr) now_.choice->forget();
  now_ = {};
  const auto found = std::ranges::find(known, buffers, &ByBuffers::value_type::first);
  if (found != known.end()) {
    std::rotate(known.begin(), found, found + 1);
  } else {
    // Ways that differ for mapped buffers alone stand last.
    const auto mapped_alone = std::ranges::count_if(calls_->ways, &NodeChoice::stages_mapped);
    const size_t ways = calls_->ways.size() - static_cast<size_t>(buffers == 0 ? mapped_alone : 0);
    ExpectedWays of_these = expected(latest_->first, *task_, calls_->ways, buffers);
    if (of_these.first >= ways) of_these.first = 0;
    if (known.size() == kMostBuffers) known.pop_back();
    known.emplace(known.begin(), buffers, std::make_unique<OnlineChoice>(ways, of_these));
  }
}

void CallChoices::end(int64_t begin_ns, int64_t end_ns) {
  if (now_.choice == nullptr) return;
  last_ = now_;
  last_begin_ns_ = begin_ns;
  last_took_ns_ = static_cast<float>(end_ns - begin_ns);
  now_ = {};
}

std::vector<CallChoices::Found> CallChoices::found() const {
  std::vector<Found> all;
  for (const auto& [kind, calls] : kinds_) {
    for (const auto& [buffers, choice] : calls.by_buffers) all.push_back({kind, buffers, calls.ways, *choice});
  }
  return all;
}

}  // namespace ccom
