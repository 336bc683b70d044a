// SPDX-License-Identifier: Apache-2.0
#include "planner/machine_view.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

namespace ccom {
namespace {

// The links of one dimension of a grid among the first devices; nothing if one is missing.
std::optional<LinkSpeed> slowest_of_dim(const Fabric& fabric, const std::vector<int>& dims, size_t dim) {
  int stride = 1, devices = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    devices *= dims[d];
    if (d > dim) stride *= dims[d];
  }
  LinkSpeed slowest{0, 1e300};
  for (int device = 0; device < devices && dims[dim] > 1; ++device) {
    const int at = device / stride % dims[dim];
    const int next = device + ((at + 1) % dims[dim] - at) * stride;
    for (const auto& [from, to] : {std::pair(device, next), std::pair(next, device)}) {
      if (!fabric.joined(from, to)) return std::nullopt;
      const auto link = std::ranges::lower_bound(fabric.links, std::pair(from, to), {},
                                                 [](const Link& l) { return std::pair(l.from, l.to); });
      slowest.latency_ns = std::max(slowest.latency_ns, link->speed.latency_ns);
      slowest.bytes_per_second = std::min(slowest.bytes_per_second, link->speed.bytes_per_second);
    }
  }
  return slowest;
}

// A whole torus, or whole layers or rows of one that close among themselves (two rows of four), or a ring.
void find_grid(MachineView& view) {
  std::vector<std::vector<int>> candidates;
  const std::vector<int>& dims = view.fabric->dims;
  if (view.fabric->shape == Fabric::Shape::Torus) {
    int inner = view.fabric->devices;
    for (size_t d = 0; d < dims.size(); ++d) {
      inner /= dims[d];
      if (view.devices % inner != 0 || view.devices < inner) continue;
      std::vector<int> part{view.devices / inner};
      part.insert(part.end(), dims.begin() + static_cast<std::ptrdiff_t>(d) + 1, dims.end());
      candidates.push_back(std::move(part));
    }
  }
  candidates.push_back({view.devices});
  for (const std::vector<int>& grid : candidates) {
    std::vector<LinkSpeed> speeds;
    for (size_t d = 0; d < grid.size(); ++d) {
      if (const auto speed = slowest_of_dim(*view.fabric, grid, d)) speeds.push_back(*speed);
    }
    if (speeds.size() < grid.size()) continue;
    view.dims = grid;
    view.dim_speeds = std::move(speeds);
    return;
  }
}

void find_links(MachineView& view) {
  const Fabric& fabric = *view.fabric;
  for (int a = 0; a < view.devices; ++a) {
    if (a > 0) view.in_line &= fabric.linked(a - 1, a);
    // Long tori are not asked for every pair: two devices that are not neighbours tell.
    for (int b = 0; b < a && view.all_linked; ++b) view.all_linked = fabric.linked(a, b) && fabric.linked(b, a);
  }
}

void find_racks(const Topology& topology, MachineView& view) {
  const std::vector<int> racks = topology.rack_numbers();
  view.has_racks = std::ranges::adjacent_find(racks, std::ranges::not_equal_to()) != racks.end();
  view.host_order.resize(topology.hosts.size());
  std::iota(view.host_order.begin(), view.host_order.end(), 0);
  std::ranges::stable_sort(view.host_order, {}, [&](int host) { return racks[static_cast<size_t>(host)]; });
  std::map<int, int> hosts;
  for (const int rack : racks) ++hosts[rack];
  const auto is_like_first = [&](const auto& rack) { return rack.second == hosts.begin()->second; };
  if (!racks.empty() && !hosts.contains(-1) && std::ranges::all_of(hosts, is_like_first))
    view.hosts_per_rack = hosts.begin()->second;
}

}  // namespace

Spot MachineView::spot(Rank rank) const {
  for (int host = 0; host < hosts; ++host) {
    for (int device = 0; device < devices; ++device) {
      for (int core = 0; core < cores; ++core) {
        if (this->rank(host, device, core) == rank) return {host, device, core};
      }
    }
  }
  return {};
}

double MachineView::mean_hops() const {
  double hops = 0;
  for (const int size : dims) hops += size / 4.0;
  return std::max(1.0, hops);
}

double MachineView::ports() const {
  double count = 0;
  for (const int size : dims) count += size > 2 ? 2 : size - 1;
  return std::max(1.0, count);
}

std::vector<std::vector<Rank>> MachineView::device_groups() const {
  std::vector<std::vector<Rank>> groups;
  for (int host = 0; host < hosts; ++host) {
    for (int core = 0; core < cores; ++core) {
      std::vector<Rank>& group = groups.emplace_back();
      for (int device = 0; device < devices; ++device) group.push_back(rank(host, device, core));
    }
  }
  return groups;
}

std::vector<std::vector<Rank>> MachineView::core_groups() const {
  std::vector<std::vector<Rank>> groups;
  for (const auto& host : ranks) groups.insert(groups.end(), host.begin(), host.end());
  return groups;
}

std::vector<std::vector<Rank>> MachineView::host_groups() const {
  std::vector<std::vector<Rank>> groups;
  for (int device = 0; device < devices; ++device) {
    for (int core = 0; core < cores; ++core) {
      std::vector<Rank>& group = groups.emplace_back();
      for (const int host : host_order) group.push_back(rank(host, device, core));
    }
  }
  return groups;
}

MachineView machine_view(const Topology& topology) {
  MachineView view;
  view.nranks = topology.nranks();
  view.hosts = static_cast<int>(topology.hosts.size());
  view.follows_fabric = true;
  find_racks(topology, view);
  for (const Host& host : topology.hosts) {
    if (host.imposed && view.fabric == nullptr) view.fabric = &*host.imposed;
    view.follows_fabric &= host.imposed && *host.imposed == *view.fabric;
  }
  // Ranks of all hosts in one pass: there may be many of either.
  std::vector<std::map<int, std::vector<Rank>>> found(topology.hosts.size());
  for (Rank rank = 0; rank < view.nranks; ++rank) {
    const Place& place = topology.ranks[static_cast<size_t>(rank)];
    found[static_cast<size_t>(place.host)][place.device].push_back(rank);
  }
  size_t least = topology.ranks.size(), most = 0;
  for (auto& by_device : found) {
    auto& host = view.ranks.emplace_back();
    size_t on_host = 0;
    for (auto& [device, ranks] : by_device) {
      view.follows_fabric &= device == static_cast<int>(host.size());
      least = std::min(least, ranks.size());
      most = std::max(most, ranks.size());
      on_host += ranks.size();
      host.push_back(std::move(ranks));
    }
    view.follows_fabric &= host.size() == view.ranks[0].size();
    view.devices = std::max(view.devices, static_cast<int>(host.size()));
    view.most_ranks = std::max(view.most_ranks, static_cast<int>(on_host));
  }
  view.follows_fabric &= least == most;
  view.cores = static_cast<int>(view.fabric != nullptr ? most : least);
  if (view.follows_fabric) {
    find_grid(view);
    find_links(view);
  } else if (view.fabric != nullptr) {
    for (Rank a = 0; a < view.nranks; ++a) {
      for (Rank b = 0; b < a && view.all_linked; ++b) view.all_linked = topology.linked(a, b);
    }
  }
  return view;
}

}  // namespace ccom
