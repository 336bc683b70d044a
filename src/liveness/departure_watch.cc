// SPDX-License-Identifier: Apache-2.0
#include "liveness/departure_watch.h"

#include <algorithm>

#include "liveness/monitor.h"

namespace ccom {

std::optional<Status> DepartureWatch::find_missing(const CallDescriptor& call) const {
  const std::optional<Departure> first = board_.first_departure();
  if (!first || first->calls >= call.number) return std::nullopt;
  return departure_error(*first, "is in " + short_text_of(call));
}

std::optional<Status> DepartureWatch::find_departed(const std::vector<Rank>& peers) const {
  const auto is_peer = [&peers](Rank rank) { return std::ranges::find(peers, rank) != peers.end(); };
  const std::vector<Rank>& mates = hosts_[static_cast<size_t>(own_host_)].ranks;
  for (size_t i = 0; i < mates.size(); ++i) {
    const auto slot = static_cast<int>(i);
    if (mates[i] == self_ || !is_peer(mates[i]) || !board_.has_left(slot)) continue;
    return departure_error({board_.slot(slot).activity.calls.begun.load(std::memory_order_relaxed), mates[i]},
                           "waits for it");
  }
  const std::optional<Departure> first = board_.first_departure();
  if (!first || !is_peer(first->rank)) return std::nullopt;
  return departure_error(*first, "waits for it");
}

Status DepartureWatch::departure_error(const Departure& departure, const std::string& meanwhile) const {
  const auto holds = [&](const HostMembers& host) { return std::ranges::binary_search(host.ranks, departure.rank); };
  const auto host = std::ranges::find_if(hosts_, holds);
  return error(ErrorKey::RankLeft, "rank %d left the communicator after its call %llu while rank %d %s", departure.rank,
               static_cast<unsigned long long>(departure.calls), self_, meanwhile.c_str())
      .with_peers({departure.rank})
      .with_host(host == hosts_.end() ? "" : host->name)
      .with_cure("that rank's output says why it ended; every rank must make every call before it leaves");
}

}  // namespace ccom
