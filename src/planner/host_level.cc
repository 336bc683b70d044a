// SPDX-License-Identifier: Apache-2.0
#include "planner/host_level.h"

#include <algorithm>

namespace ccom {
namespace {

constexpr size_t kMostAllToAllBytes = size_t{1} << 20;

}  // namespace

std::optional<HostLevel> host_level(const Topology& topology, Rank rank) {
  HostLevel level;
  level.hosts = static_cast<int>(topology.hosts.size());
  level.host = topology.ranks[static_cast<size_t>(rank)].host;
  level.neighbours = topology.ranks_of(level.host);
  level.ranks_per_host = static_cast<int>(level.neighbours.size());
  level.place = static_cast<int>(std::ranges::find(level.neighbours, rank) - level.neighbours.begin());
  if (level.hosts < 2 || level.ranks_per_host < 2) return std::nullopt;
  level.in_order = true;
  for (int host = 0; host < level.hosts; ++host) {
    const std::vector<Rank> ranks = topology.ranks_of(host);
    const bool alike = static_cast<int>(ranks.size()) == level.ranks_per_host;
    if (!alike || topology.hosts[static_cast<size_t>(host)].imposed) return std::nullopt;
    level.mates.push_back(ranks[static_cast<size_t>(level.place)]);
    level.in_order &=
        ranks.front() == host * level.ranks_per_host && ranks.back() - ranks.front() + 1 == level.ranks_per_host;
  }
  return level;
}

bool serves(const HostLevel& level, Collective collective, size_t bytes) {
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Reduce:
    case Collective::Broadcast:
    case Collective::Barrier: return true;
    case Collective::ReduceScatter:
    case Collective::AllGather: return level.in_order;
    case Collective::AllToAll: return level.in_order && bytes <= kMostAllToAllBytes;
    default: return false;
  }
}

Topology across(const Topology& topology, const HostLevel& level) {
  Topology result;
  result.hosts = topology.hosts;
  for (int host = 0; host < level.hosts; ++host) result.ranks.push_back({.host = host});
  result.memory = topology.memory;
  result.network = topology.network;
  result.network.bytes_per_second /= level.ranks_per_host;
  return result;
}

Topology inside(const Topology& topology, const HostLevel& level) {
  Topology result;
  result.hosts = {topology.hosts[static_cast<size_t>(level.host)]};
  for (const Rank rank : level.neighbours) {
    result.ranks.push_back(topology.ranks[static_cast<size_t>(rank)]);
    result.ranks.back().host = 0;
  }
  // Its share of a machine that it is not alone on.
  Host& host = result.hosts[0];
  host.cpus = std::max(1, host.cpus * level.ranks_per_host / topology.ranks_on_machine_of(level.host));
  result.memory = topology.memory;
  result.network = topology.network;
  return result;
}

}  // namespace ccom
