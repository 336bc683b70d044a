// SPDX-License-Identifier: Apache-2.0
#include "planner/fabric_view.h"

#include <algorithm>
#include <map>

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
void find_grid(FabricView& view) {
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

void find_links(FabricView& view) {
  const Fabric& fabric = *view.fabric;
  view.in_line = true;
  view.all_linked = true;
  for (int a = 0; a < view.devices; ++a) {
    if (a > 0) view.in_line &= fabric.linked(a - 1, a);
    // Long tori are not asked for every pair: two devices that are not neighbours tell.
    for (int b = 0; b < a && view.all_linked; ++b) view.all_linked = fabric.linked(a, b) && fabric.linked(b, a);
  }
}

}  // namespace

double FabricView::mean_hops() const {
  double hops = 0;
  for (const int size : dims) hops += size / 4.0;
  return std::max(1.0, hops);
}

double FabricView::ports() const {
  double count = 0;
  for (const int size : dims) count += size > 2 ? 2 : size - 1;
  return std::max(1.0, count);
}

std::vector<std::vector<Rank>> FabricView::device_groups() const {
  std::vector<std::vector<Rank>> groups;
  for (int host = 0; host < hosts; ++host) {
    for (int core = 0; core < cores; ++core) {
      std::vector<Rank>& group = groups.emplace_back();
      for (int device = 0; device < devices; ++device) group.push_back(rank(host, device, core));
    }
  }
  return groups;
}

std::vector<std::vector<Rank>> FabricView::core_groups() const {
  std::vector<std::vector<Rank>> groups;
  for (const auto& host : ranks) groups.insert(groups.end(), host.begin(), host.end());
  return groups;
}

std::vector<std::vector<Rank>> FabricView::host_groups() const {
  std::vector<std::vector<Rank>> groups;
  for (int device = 0; device < devices; ++device) {
    for (int core = 0; core < cores; ++core) {
      std::vector<Rank>& group = groups.emplace_back();
      for (int host = 0; host < hosts; ++host) group.push_back(rank(host, device, core));
    }
  }
  return groups;
}

std::optional<FabricView> fabric_view(const Topology& topology) {
  FabricView view;
  view.hosts = static_cast<int>(topology.hosts.size());
  for (int host = 0; host < view.hosts; ++host) {
    const auto& imposed = topology.hosts[static_cast<size_t>(host)].imposed;
    if (!imposed) return std::nullopt;
    if (host == 0) view.fabric = &*imposed;
    if (host > 0 && *imposed != *view.fabric) return std::nullopt;
  }
  // Ranks of all hosts in one pass: there may be many of either.
  view.ranks.resize(topology.hosts.size());
  std::vector<std::map<int, std::vector<Rank>>> found(topology.hosts.size());
  for (Rank rank = 0; rank < topology.nranks(); ++rank) {
    const Place& place = topology.ranks[static_cast<size_t>(rank)];
    found[static_cast<size_t>(place.host)][place.device].push_back(rank);
  }
  const size_t cores = found[0].begin()->second.size();
  for (size_t host = 0; host < found.size(); ++host) {
    int next = 0;
    for (auto& [device, ranks] : found[host]) {
      if (device != next++ || ranks.size() != cores) return std::nullopt;
      view.ranks[host].push_back(std::move(ranks));
    }
    if (view.ranks[host].size() != view.ranks[0].size()) return std::nullopt;
  }
  view.devices = static_cast<int>(view.ranks[0].size());
  view.cores = static_cast<int>(cores);
  find_grid(view);
  find_links(view);
  return view;
}

}  // namespace ccom
