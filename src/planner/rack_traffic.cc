// SPDX-License-Identifier: Apache-2.0
#include "planner/rack_traffic.h"

#include <algorithm>

namespace ccom {

RackTraffic::RackTraffic(const Topology& topology, const std::vector<int>& racks,
                         std::span<const std::vector<Rank>> groups)
    : topology_(topology), racks_(racks), groups_(groups) {
  for (const RackUplinks& uplinks : topology.rack_uplinks()) taper_.push_back(uplinks.taper());
  members_.resize(taper_.size());
  for (const std::vector<Rank>& group : groups) {
    for (const Rank rank : group) {
      if (rack_of(rank) >= 0) ++members_[static_cast<size_t>(rack_of(rank))];
    }
  }
}

double RackTraffic::stretch(std::span<const LevelRound> rounds, double slack) const {
  if (rounds.empty()) return std::max(1.0, uplinks_to_all() / slack);
  double bytes = 0, stretched = 0;
  for (const LevelRound& round : rounds) {
    bytes += round.bytes;
    stretched += round.bytes * std::max(1.0, uplinks_in(round) / slack);
  }
  return bytes > 0 ? stretched / bytes : 1;
}

double RackTraffic::uplinks_in(const LevelRound& round) const {
  std::vector<double> out(taper_.size()), in(taper_.size());
  for (const std::vector<Rank>& group : groups_) {
    for (uint32_t member = 0; member < group.size(); ++member) {
      const int from = rack_of(group[member]), to = rack_of(group[round.to(member)]);
      if (from == to) continue;
      if (from >= 0) ++out[static_cast<size_t>(from)];
      if (to >= 0) ++in[static_cast<size_t>(to)];
    }
  }
  double most = 0;
  for (size_t rack = 0; rack < taper_.size(); ++rack) {
    if (members_[rack] > 0) most = std::max(most, taper_[rack] * std::max(out[rack], in[rack]) / members_[rack]);
  }
  return most;
}

double RackTraffic::uplinks_to_all() const {
  std::vector<double> out(taper_.size());  // in shares of what a member sends
  for (const std::vector<Rank>& group : groups_) {
    std::vector<double> here(taper_.size());
    for (const Rank rank : group) {
      if (rack_of(rank) >= 0) ++here[static_cast<size_t>(rack_of(rank))];
    }
    const auto size = static_cast<double>(group.size());
    for (size_t rack = 0; rack < here.size(); ++rack)
      out[rack] += here[rack] * (size - here[rack]) / std::max(size - 1, 1.0);
  }
  double most = 0;
  for (size_t rack = 0; rack < taper_.size(); ++rack) {
    if (members_[rack] > 0) most = std::max(most, taper_[rack] * out[rack] / members_[rack]);
  }
  return most;
}

bool RackTraffic::crosses() const {
  return std::ranges::any_of(groups_, [&](const std::vector<Rank>& group) {
    return std::ranges::any_of(group, [&](Rank rank) { return rack_of(rank) != rack_of(group[0]); });
  });
}

}  // namespace ccom
