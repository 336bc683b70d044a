// SPDX-License-Identifier: Apache-2.0
#include "planner/shapes.h"

#include <algorithm>
#include <map>
#include <set>

namespace ccom {
namespace {

// Ranks of one host by device, devices ascending. Without a fabric everybody is on one device.
std::vector<std::vector<Rank>> ranks_by_device(const Topology& topology, int host) {
  std::map<int, std::vector<Rank>> by_device;
  for (const Rank rank : topology.ranks_of(host))
    by_device[topology.ranks[static_cast<size_t>(rank)].device].push_back(rank);
  std::vector<std::vector<Rank>> result;
  for (auto& [device, ranks] : by_device) result.push_back(std::move(ranks));
  return result;
}

const Fabric* fabric_of(const Topology& topology, int host) {
  const auto& imposed = topology.hosts[static_cast<size_t>(host)].imposed;
  return imposed ? &*imposed : nullptr;
}

// The pattern that the first `count` devices of a fabric can run, if any.
std::optional<Level> device_pattern(const Fabric& fabric, int count) {
  const auto all = [&](auto linked) {
    for (int a = 0; a < count; ++a) {
      for (int b = 0; b < count; ++b) {
        if (a != b && !linked(a, b)) return false;
      }
    }
    return true;
  };
  if (all([&](int a, int b) { return fabric.linked(a, b); })) return Level{.pattern = Pattern::Direct, .owners = count};
  if (fabric.shape == Fabric::Shape::Torus && count == fabric.devices && fabric.dims.size() == 2) {
    return Level{.pattern = Pattern::Torus, .owners = count, .dims = fabric.dims};
  }
  if (all([&](int a, int b) { return b != (a + 1) % count || fabric.linked(a, b); })) {
    return Level{.pattern = Pattern::Ring, .owners = count};
  }
  return std::nullopt;
}

// Appends the levels of hosts with an imposed fabric: all hosts must be occupied alike.
bool add_fabric_levels(const Topology& topology, Staged& shape) {
  const Fabric& fabric = *fabric_of(topology, 0);
  const auto first = ranks_by_device(topology, 0);
  const size_t cores = first[0].size();
  Level inside{.pattern = Pattern::Direct, .owners = static_cast<int>(cores)};
  std::optional<Level> devices = device_pattern(fabric, static_cast<int>(first.size()));
  if (!devices) return false;
  for (int host = 0; host < static_cast<int>(topology.hosts.size()); ++host) {
    const auto by_device = ranks_by_device(topology, host);
    if (fabric_of(topology, host) == nullptr || *fabric_of(topology, host) != fabric ||
        by_device.size() != first.size())
      return false;
    for (const auto& ranks : by_device) {
      if (ranks.size() != cores) return false;
      inside.groups.push_back(ranks);
    }
    for (size_t core = 0; core < cores; ++core) {
      std::vector<Rank>& line = devices->groups.emplace_back();
      for (const auto& ranks : by_device) line.push_back(ranks[core]);
    }
  }
  if (cores > 1) shape.levels.push_back(std::move(inside));
  if (first.size() > 1) shape.levels.push_back(*std::move(devices));
  return true;
}

void add_host_level(const Topology& topology, int smallest, Staged& shape) {
  Level inside{.pattern = Pattern::Direct, .owners = smallest};
  bool trivial = true;
  for (int host = 0; host < static_cast<int>(topology.hosts.size()); ++host) {
    inside.groups.push_back(topology.ranks_of(host));
    trivial &= inside.groups.back().size() == 1;
  }
  if (!trivial) shape.levels.push_back(std::move(inside));
}

}  // namespace

bool all_linked(const Topology& topology) {
  for (const Host& host : topology.hosts) {
    if (!host.imposed || host.imposed->routed || host.imposed->shape == Fabric::Shape::Full ||
        host.imposed->shape == Fabric::Shape::Switch || host.imposed->shape == Fabric::Shape::Single)
      continue;
    for (Rank a = 0; a < topology.nranks(); ++a) {
      for (Rank b = 0; b < a; ++b) {
        if (!topology.linked(a, b)) return false;
      }
    }
    return true;
  }
  return true;
}

std::optional<Staged> machine_levels(const Topology& topology, Pattern across) {
  Staged shape;
  const auto hosts = static_cast<int>(topology.hosts.size());
  int smallest = topology.nranks();
  for (int host = 0; host < hosts; ++host) {
    smallest = std::min(smallest, static_cast<int>(topology.ranks_of(host).size()));
  }
  if (fabric_of(topology, 0) != nullptr) {
    if (!add_fabric_levels(topology, shape)) return std::nullopt;
  } else {
    add_host_level(topology, smallest, shape);
  }
  if (hosts > 1) {
    Level level{.pattern = across, .owners = hosts};
    level.groups.resize(static_cast<size_t>(smallest));
    for (int host = 0; host < hosts; ++host) {
      const std::vector<Rank> ranks = topology.ranks_of(host);
      for (size_t i = 0; i < static_cast<size_t>(smallest); ++i) level.groups[i].push_back(ranks[i]);
    }
    const bool is_core = across == Pattern::OneShot || across == Pattern::RecursiveDoubling;
    (is_core ? shape.core : shape.levels).push_back(std::move(level));
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

Tree machine_tree(const Topology& topology, Rank root) {
  Tree tree{root, std::vector<Rank>(static_cast<size_t>(topology.nranks()), -1), 1};
  const int root_host = topology.ranks[static_cast<size_t>(root)].host;
  const auto hosts = static_cast<int>(topology.hosts.size());
  // Hosts form a binomial tree; a host's top rank is its lowest one, or the root.
  const Tree across = knomial_tree(hosts, root_host, 2);
  const auto top_of = [&](int host) { return host == root_host ? root : topology.ranks_of(host).front(); };
  for (int host = 0; host < hosts; ++host) {
    grow(topology, top_of(host), tree);
    if (host != root_host) {
      tree.parent[static_cast<size_t>(top_of(host))] = top_of(across.parent[static_cast<size_t>(host)]);
    }
  }
  return tree;
}

}  // namespace ccom
