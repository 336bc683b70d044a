// SPDX-License-Identifier: Apache-2.0
#include "planner/node_machine.h"

#include <algorithm>

namespace ccom {

HostMachine::HostMachine(const Topology& topology, int host) {
  const Host& about = topology.hosts[static_cast<size_t>(host)];
  const std::vector<Rank> ranks = topology.ranks_of(host);
  for (const Rank rank : ranks) domains.push_back(topology.ranks[static_cast<size_t>(rank)].numa_node);
  if (std::ranges::count(domains, -1) > 0) domains.clear();
  machine.domains = domains;
  // Its share of a machine that it is not alone on.
  machine.cpus =
      std::max(1, about.cpus * static_cast<int>(ranks.size()) / std::max(topology.ranks_on_machine_of(host), 1));
  for (const Cache& cache : about.caches) {
    if (cache.level == 1) machine.first_cache_bytes = cache.size_bytes;
    if (cache.level == 2) machine.cache_bytes = cache.size_bytes;
    if (cache.level == 3) machine.last_cache_bytes = cache.size_bytes;
  }
  machine.costs = topology.memory_costs;
}

}  // namespace ccom
