// SPDX-License-Identifier: Apache-2.0
#include "liveness/departure_watch.h"

#include <algorithm>

#include "liveness/call_mismatch.h"
#include "liveness/monitor_config.h"

namespace ccom {

const std::vector<Rank>& DepartureWatch::mates() const { return hosts_[static_cast<size_t>(own_host_)].ranks; }

std::optional<Status> DepartureWatch::find_missing(const CallDescriptor& call) const {
  const std::optional<Departure> first = board_.first_departure();
  if (!first || first->calls >= call.number) return std::nullopt;
  return departure_error(*first, "is in " + short_text_of(call));
}

std::optional<Status> DepartureWatch::find_departed(const std::vector<Rank>& peers) const {
  const auto is_peer = [&peers](Rank rank) { return std::ranges::find(peers, rank) != peers.end(); };
  for (size_t i = 0; i < mates().size(); ++i) {
    const auto slot = static_cast<int>(i);
    if (mates()[i] == self_ || !is_peer(mates()[i]) || !board_.has_left(slot)) continue;
    return departure_error({board_.slot(slot).activity.calls.begun.load(std::memory_order_relaxed), mates()[i]},
                           "waits for it");
  }
  const std::optional<Departure> first = board_.first_departure();
  if (!first || !is_peer(first->rank)) return std::nullopt;
  return departure_error(*first, "waits for it");
}

std::optional<Status> DepartureWatch::find_different(const Departure& other) const {
  for (size_t i = 0; i < mates().size(); ++i) {
    const std::optional<Departure> mate = board_.departure_of(static_cast<int>(i), mates()[i]);
    if (mate && mate->rank != other.rank && are_different(*mate, other)) return difference_error(*mate, other);
  }
  const std::optional<Departure> first = board_.first_departure();
  if (first && first->rank != other.rank && are_different(*first, other)) return difference_error(*first, other);
  return std::nullopt;
}

Status DepartureWatch::difference_error(const Departure& a, const Departure& b) const {
  const auto& [low, high] = a.rank < b.rank ? std::pair(a, b) : std::pair(b, a);
  const std::string call_of_low = last_call_of(low), call_of_high = last_call_of(high);
  return mismatch_error(low.rank, call_of_low, high.rank, call_of_high,
                        low.calls == high.calls && call_of_low == call_of_high
                            ? " (the last ones before they left, after different ones or different results)"
                            : " (the last ones before they left)");
}

// What calls of other hosts' ranks were has not been told.
std::string DepartureWatch::last_call_of(const Departure& departure) const {
  if (departure.calls == 0) return "no call";
  const auto mate = std::ranges::find(mates(), departure.rank);
  if (mate == mates().end()) return "call " + std::to_string(departure.calls);
  return text_of(board_.slot(static_cast<int>(mate - mates().begin())).activity.calls.last());
}

Status DepartureWatch::departure_error(const Departure& departure, const std::string& meanwhile) const {
  const HostMembers* const host = host_of(hosts_, departure.rank);
  return error(ErrorKey::RankLeft, "rank %d left the communicator after its call %llu while rank %d %s", departure.rank,
               static_cast<unsigned long long>(departure.calls), self_, meanwhile.c_str())
      .with_peers({departure.rank})
      .with_host(host == nullptr ? "" : host->name)
      .with_cure("that rank's output says why it ended; every rank must make every call before it leaves");
}

}  // namespace ccom
