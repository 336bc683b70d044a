// SPDX-License-Identifier: Apache-2.0
#include "planner/node_machine.h"

#include <algorithm>

namespace ccom {

MemoryCosts with_measured(MemoryCosts costs, const OwnCosts& measured) {
  const auto take = [](double ns, double& cost) {
    if (ns > 0) cost = ns;
  };
  take(measured.far_load_ns, costs.far_load_ns);
  take(measured.far_store_ns, costs.far_store_ns);
  take(measured.streamed_store_ns, costs.streamed_store_ns);
  take(measured.read_call_ns, costs.read_call_ns);
  take(measured.read_byte_ns, costs.read_byte_ns);
  return costs;
}

HostMachine::HostMachine(const Topology& topology, int host) {
  const Host& about = topology.hosts[static_cast<size_t>(host)];
  const std::vector<Rank> ranks = topology.ranks_of(host);
  for (const Rank rank : ranks) domains.push_back(topology.ranks[static_cast<size_t>(rank)].numa_node);
  if (std::ranges::count(domains, -1) > 0) domains.clear();
  machine.domains = domains;
  // Its share of a machine that it is not alone on.
  machine.cpus =
      std::max(1, about.cpus * static_cast<int>(ranks.size()) / std::max(topology.ranks_on_machine_of(host), 1));
  const auto set = [&](int level, size_t& size_bytes) {
    if (about.cache_bytes(level) > 0) size_bytes = about.cache_bytes(level);
  };
  set(1, machine.first_cache_bytes);
  set(2, machine.cache_bytes);
  set(3, machine.last_cache_bytes);
  machine.costs = topology.memory_costs;
}

HostMachine::HostMachine(const Topology& topology, int host, const MeasuredCosts& measured)
    : HostMachine(topology, host) {
  machine.lines = measured.lines;
  if (machine.costs != MemoryCosts()) return;  // somebody has measured them at length
  machine.costs = with_measured(machine.costs, measured.own);
}

}  // namespace ccom
