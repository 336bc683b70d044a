// SPDX-License-Identifier: Apache-2.0
#include "planner/shapes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "planner/search.h"

namespace ccom {

std::optional<Staged> machine_levels(const MachineView& view, Pattern across) {
  if (view.fabric != nullptr && !view.follows_fabric) return std::nullopt;
  Staged shape;
  if (view.most_ranks > view.devices) shape.levels.push_back({.owners = view.cores, .groups = view.core_groups()});
  if (view.devices > 1) {
    Level level{.owners = view.devices, .groups = view.device_groups()};
    if (!view.all_linked && view.fabric->shape == Fabric::Shape::Torus && view.devices == view.fabric->devices &&
        view.fabric->dims.size() == 2) {
      level.pattern = Pattern::Torus;
      level.dims = view.fabric->dims;
    } else if (!view.all_linked) {
      if (!view.in_line || !view.fabric->linked(view.devices - 1, 0)) return std::nullopt;
      level.pattern = Pattern::Ring;
    }
    shape.levels.push_back(std::move(level));
  }
  if (view.hosts > 1) {
    const bool is_core = across == Pattern::OneShot || across == Pattern::RecursiveDoubling;
    (is_core ? shape.core : shape.levels)
        .push_back({.pattern = across, .owners = view.hosts, .groups = view.host_groups()});
  }
  return shape;
}

std::optional<Staged> rack_levels(const MachineView& view) {
  if (view.fabric != nullptr || !view.has_racks || view.hosts_per_rack < 2) return std::nullopt;
  Staged shape;
  if (view.most_ranks > 1) shape.levels.push_back({.owners = view.cores, .groups = view.core_groups()});
  const std::vector<int> dims{view.hosts / view.hosts_per_rack, view.hosts_per_rack};
  for (Level& level : dimension_levels(Pattern::Direct, dims, view.host_groups())) {
    if (level.owners > kMostDirect) level.pattern = Pattern::Circulant;
    shape.levels.push_back(std::move(level));
  }
  return shape;
}

Level square_torus(int nranks) {
  int rows = 1;
  for (int r = 2; r * r <= nranks; ++r) {
    if (nranks % r == 0) rows = r;
  }
  Level level = flat_level(Pattern::Torus, nranks);
  level.dims = {rows, nranks / rows};
  return level;
}

namespace {

// Hangs all ranks of a host below `top`, breadth first over the host's links; each device is reached once, by one of
// its ranks, which hands on to the others.
void grow(const Topology& topology, Rank top, Tree& tree) {
  const auto device_of = [&](Rank rank) { return topology.ranks[static_cast<size_t>(rank)].device; };
  std::map<int, std::vector<Rank>> left;  // by device
  for (const Rank rank : topology.ranks_of(topology.ranks[static_cast<size_t>(top)].host)) {
    if (rank != top) left[device_of(rank)].push_back(rank);
  }
  std::vector<Rank> reached{top};
  const auto hang = [&](Rank rank, Rank parent) {
    tree.parent[static_cast<size_t>(rank)] = parent;
    reached.push_back(rank);
  };
  std::set<int> entered{device_of(top)};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (auto& [device, ranks] : left) {
      if (ranks.empty()) continue;
      const bool own = device == device_of(reached[i]);
      if (!own && (entered.contains(device) || !topology.linked(reached[i], ranks.front()))) continue;
      entered.insert(device);
      const size_t count = own ? ranks.size() : 1;
      for (size_t k = 0; k < count; ++k) hang(ranks[k], reached[i]);
      ranks.erase(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(count));
    }
  }
}

}  // namespace

std::vector<Rank> ranks_by_rack(const Topology& topology) {
  std::vector<Rank> order(topology.ranks.size());
  std::iota(order.begin(), order.end(), 0);
  const std::vector<int> racks = topology.rack_numbers();
  std::ranges::stable_sort(order, {}, [&](Rank rank) {
    const int host = topology.ranks[static_cast<size_t>(rank)].host;
    return std::pair(racks[static_cast<size_t>(host)], racks[static_cast<size_t>(host)] < 0 ? 0 : host);
  });
  return order;
}

namespace {

// By host, -1 for the root: a binomial tree of the first hosts of racks, of which the root is one, and below each of
// them one of its rack's others. A host in no rack is a rack of its own.
std::vector<Rank> parents_of_hosts(const Topology& topology, int root) {
  const std::vector<int> racks = topology.rack_numbers();
  std::map<int, std::vector<Rank>> members;  // by rack, the first one its top
  for (int host = 0; host < static_cast<int>(racks.size()); ++host) {
    const int rack = racks[static_cast<size_t>(host)];
    std::vector<Rank>& hosts = members[rack >= 0 ? rack : static_cast<int>(racks.size()) + host];
    hosts.insert(host == root ? hosts.begin() : hosts.end(), host);
  }
  std::vector<Rank> tops, parents(racks.size(), -1);
  int root_rack = 0;
  for (const auto& [rack, hosts] : members) {
    if (hosts[0] == root) root_rack = static_cast<int>(tops.size());
    tops.push_back(hosts[0]);
    const Tree inside = knomial_tree(static_cast<int>(hosts.size()), 0, 2);
    for (size_t i = 1; i < hosts.size(); ++i)
      parents[static_cast<size_t>(hosts[i])] = hosts[static_cast<size_t>(inside.parent[i])];
  }
  const Tree across = knomial_tree(static_cast<int>(tops.size()), root_rack, 2);
  for (size_t i = 0; i < tops.size(); ++i) {
    if (across.parent[i] >= 0) parents[static_cast<size_t>(tops[i])] = tops[static_cast<size_t>(across.parent[i])];
  }
  return parents;
}

}  // namespace

Tree machine_tree(const Topology& topology, Rank root) {
  Tree tree{root, std::vector<Rank>(static_cast<size_t>(topology.nranks()), -1), 1};
  const int root_host = topology.ranks[static_cast<size_t>(root)].host;
  const auto hosts = static_cast<int>(topology.hosts.size());
  // A host's top rank is its lowest one, or the root.
  const std::vector<Rank> above = parents_of_hosts(topology, root_host);
  const auto top_of = [&](int host) { return host == root_host ? root : topology.ranks_of(host).front(); };
  for (int host = 0; host < hosts; ++host) {
    grow(topology, top_of(host), tree);
    if (host != root_host) {
      tree.parent[static_cast<size_t>(top_of(host))] = top_of(above[static_cast<size_t>(host)]);
    }
  }
  return tree;
}

}  // namespace ccom
