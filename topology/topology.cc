// SPDX-License-Identifier: Apache-2.0
#include "topology/topology.h"

#include <algorithm>

#include "base/assert.h"
#include "base/text.h"
#include "topology/recognise.h"
#include "topology/shapes.h"

namespace ccom {
namespace {

const Place& place_of(const Topology& topology, Rank rank) {
  CCOM_ASSERT(rank >= 0 && rank < topology.nranks());
  return topology.ranks[static_cast<size_t>(rank)];
}

}  // namespace

bool Fabric::linked(int a, int b) const {
  if (a == b) return true;
  if (routed) return a >= 0 && b >= 0 && a < devices && b < devices;
  if (joined(a, b)) return true;
  for (int hub = devices; hub < devices + switches; ++hub) {
    if (joined(a, hub) && joined(hub, b)) return true;
  }
  return false;
}

bool Fabric::joined(int a, int b) const {
  const auto at = std::ranges::lower_bound(links, std::pair(a, b), {},
                                           [](const Link& link) { return std::pair(link.from, link.to); });
  return at != links.end() && at->from == a && at->to == b;
}

size_t Host::cache_bytes(int level) const {
  const auto found = std::ranges::find(caches, level, &Cache::level);
  return found == caches.end() ? 0 : found->size_bytes;
}

int Topology::ranks_on_machine_of(int host) const {
  CCOM_ASSERT(host >= 0 && static_cast<size_t>(host) < hosts.size());
  const std::string& machine = hosts[static_cast<size_t>(host)].machine;
  return static_cast<int>(std::ranges::count_if(ranks, [&](const Place& place) {
    return place.host == host || (!machine.empty() && hosts[static_cast<size_t>(place.host)].machine == machine);
  }));
}

std::vector<Rank> Topology::ranks_of(int host) const {
  std::vector<Rank> members;
  for (Rank rank = 0; rank < nranks(); ++rank) {
    if (ranks[static_cast<size_t>(rank)].host == host) members.push_back(rank);
  }
  return members;
}

bool Topology::linked(Rank a, Rank b) const {
  const Place& from = place_of(*this, a);
  const Place& to = place_of(*this, b);
  if (a == b || from.host != to.host) return true;
  const auto& fabric = hosts[static_cast<size_t>(from.host)].imposed;
  return !fabric || fabric->linked(from.device, to.device);
}

// Several hosts that one imitates: here as many devices, all of which reach one another.
Status impose_hosts(Host& host, std::string_view name) {
  CCOM_TRY_ASSIGN(const Topology hosts, make_topology(name));
  if (!std::ranges::all_of(hosts.hosts, [](const Host& each) { return each.imposed.has_value(); })) {
    return error(ErrorKey::TopologyFile, "topology \"%s\": a host without a fabric cannot be imitated",
                 std::string(name).c_str())
        .with_cure("Name hosts with a fabric, e.g. 2*torus:2x2.");
  }
  CCOM_TRY_ASSIGN(host.imposed, make_fabric("switch:" + std::to_string(hosts.nranks())));
  host.imposed->name = name;
  return {};
}

Status impose(Host& host, std::string_view name) {
  if (names_cluster(name)) return impose_hosts(host, name);
  if (name != "neuron") {
    CCOM_TRY_ASSIGN(host.imposed, make_fabric(name));
    return Status::ok();
  }
  if (!host.neuron) {
    return error(ErrorKey::TopologyFile, "topology \"neuron\": no Neuron device was found on host %s",
                 host.name.c_str())
        .with_cure("Name a preset, or see what ccom-topo finds.");
  }
  if (!host.neuron->routed && !is_connected(host.neuron->devices + host.neuron->switches, edges_of(*host.neuron))) {
    return error(ErrorKey::TopologyFile, "topology \"neuron\": the links known on host %s do not join its %d devices",
                 host.name.c_str(), host.neuron->devices)
        .with_cure("See the notes of ccom-topo; a topology file can say which links there are.");
  }
  host.imposed = host.neuron;
  return Status::ok();
}

Status check_connected(const Topology& topology) {
  const Fabric* last = nullptr;
  for (const Host& host : topology.hosts) {
    if (!host.imposed || (last != nullptr && *host.imposed == *last)) continue;
    last = &*host.imposed;
    if (is_connected(last->devices + last->switches, edges_of(*last))) continue;
    return error(ErrorKey::TopologyFile, "topology \"%s\": its links do not join all of its %d devices",
                 last->name.c_str(), last->devices);
  }
  return {};
}

uint64_t hash_of(const Topology& topology) { return hash_of_text(to_json(topology)); }

}  // namespace ccom
