// SPDX-License-Identifier: Apache-2.0
#include "setup/transport_routes.h"

#include <algorithm>

#include "messages/routes.h"

namespace ccom {
namespace {

const Host& host_of(const Topology& topology, Rank rank) {
  return topology.hosts[static_cast<size_t>(topology.ranks[static_cast<size_t>(rank)].host)];
}

std::vector<std::string> preference(const CommConfig& config) {
  return config.transports.empty() ? std::vector<std::string>{"shm", "tcp"} : config.transports;
}

int index_of(const std::string& name, std::vector<std::string>& names) {
  const auto found = std::ranges::find(names, name);
  const auto index = static_cast<int>(found - names.begin());
  if (found == names.end()) names.push_back(name);
  return index;
}

}  // namespace

bool TransportRoutes::uses(const std::string& name) const { return std::ranges::find(names, name) != names.end(); }

Result<TransportRoutes> choose_routes(const CommConfig& config, const Topology& topology, const Topology& imitated,
                                      Rank rank) {
  const std::vector<std::string> names = preference(config);
  const int host = topology.ranks[static_cast<size_t>(rank)].host;
  TransportRoutes routes;
  routes.of.assign(topology.ranks.size(), -1);
  for (Rank peer = 0; peer < static_cast<Rank>(topology.ranks.size()); ++peer) {
    if (peer == rank) continue;
    const bool local = topology.ranks[static_cast<size_t>(peer)].host == host;
    const auto able = std::ranges::find_if(names, [local](const std::string& name) { return local || name != "shm"; });
    if (able == names.end()) {
      return error(ErrorKey::ShmBetweenHosts,
                   "rank %d and rank %d are on different hosts (%s and %s), which transport shm cannot join", rank,
                   peer, host_of(topology, rank).name.c_str(), host_of(topology, peer).name.c_str())
          .with_peers({peer})
          .with_cure("add tcp or ofi to the list of transports (CCOM_TRANSPORT=shm,tcp)");
    }
    const int transport = index_of(*able, routes.names);
    if (imitated.linked(rank, peer)) routes.of[static_cast<size_t>(peer)] = transport;
  }
  return routes;
}

int message_channels(const CommConfig& config, const RankRoutes& ways) {
  static_assert(MessageRoutes::kChannels + kMostLanes <= kMaxChannels);
  if (!config.messages && ways.lanes() == 0) return 0;
  return MessageRoutes::kChannels + ways.lanes();
}

// At the start a network that does not let connections through is an error of the start, and the first calls are as
// fast as others; that is worth a few connections.
bool connects_on_use(const CommConfig& config, int nranks) {
  constexpr int kMostAtStart = 32;
  return config.connect == Connect::Use || (config.connect == Connect::Auto && nranks > kMostAtStart);
}

bool uses_shm(const CommConfig& config, const Topology& topology, Rank rank) {
  const bool is_alone = topology.ranks_of(topology.ranks[static_cast<size_t>(rank)].host).size() == 1;
  return !is_alone && preference(config).front() == "shm";
}

bool shares_memory_freely(const CommConfig& config, const Topology& topology, Rank rank) {
  return uses_shm(config, topology, rank) && !host_of(topology, rank).imposed.has_value();
}

}  // namespace ccom
