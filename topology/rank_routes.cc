// SPDX-License-Identifier: Apache-2.0
#include "topology/rank_routes.h"

#include <algorithm>
#include <cmath>

#include "topology/shapes.h"

namespace ccom {
namespace {

// Graphs that are no grids are searched from every device.
constexpr size_t kMostSearched = 256;

bool is_grid(const Fabric& fabric) {
  return fabric.shape == Fabric::Shape::Ring || fabric.shape == Fabric::Shape::Torus ||
         fabric.shape == Fabric::Shape::Chain;
}

// Whether two of these devices share no link.
bool lacks_links(const Fabric& fabric, const std::vector<int>& devices) {
  if (fabric.routed || fabric.shape == Fabric::Shape::Switch || fabric.shape == Fabric::Shape::Full) return false;
  for (size_t i = 0; i < devices.size(); ++i) {
    for (size_t k = i + 1; k < devices.size(); ++k) {
      if (!fabric.linked(devices[i], devices[k]) || !fabric.linked(devices[k], devices[i])) return true;
    }
  }
  return false;
}

}  // namespace

// Least of (hops - 1) piece / bandwidth + message / piece * start, where a link carries kStartBytes during a start.
size_t forwarded_piece_bytes(size_t message_bytes, int hops) {
  constexpr double kStartBytes = 6000;
  const double best = std::sqrt(static_cast<double>(message_bytes) * kStartBytes / std::max(hops - 1, 1));
  size_t piece = size_t{16} << 10;
  while (piece < kMostPieceBytes && 1.5 * static_cast<double>(piece) < best) piece *= 2;
  return piece;
}

RankRoutes::RankRoutes(const Topology& topology, int most_lanes) : topology_(topology) {
  for (int host = 0; host < static_cast<int>(topology.hosts.size()); ++host) hosts_.push_back(add_host(host));
  if (lanes_ > most_lanes) lanes_ = 0;
  if (lanes_ == 0) hosts_.clear();
}

RankRoutes::HostWays RankRoutes::add_host(int host) {
  const std::optional<Fabric>& fabric = topology_.hosts[static_cast<size_t>(host)].imposed;
  HostWays ways;
  if (!fabric) return ways;
  ways.ranks_on.resize(static_cast<size_t>(fabric->devices));
  for (const Rank rank : topology_.ranks_of(host)) {
    ways.ranks_on[static_cast<size_t>(topology_.ranks[static_cast<size_t>(rank)].device)].push_back(rank);
  }
  std::vector<int> occupied;
  for (int device = 0; device < fabric->devices; ++device) {
    if (!ways.ranks_on[static_cast<size_t>(device)].empty()) occupied.push_back(device);
  }
  if (!lacks_links(*fabric, occupied)) return ways;
  are_needed_ = true;
  ways.is_grid = is_grid(*fabric) && occupied.size() == static_cast<size_t>(fabric->devices);
  if (ways.is_grid) {
    lanes_ = std::max(lanes_, fabric->shape == Fabric::Shape::Chain ? 1 : 2);
  } else if (occupied.size() <= kMostSearched) {
    count_hops(*fabric, ways);
    for (const std::vector<int>& hops : ways.hops) {
      for (const int left : hops) lanes_ = std::max(lanes_, left);
    }
  }
  return ways;
}

// Breadth-first search from each device against the direction of the links.
void RankRoutes::count_hops(const Fabric& fabric, HostWays& ways) const {
  const auto devices = static_cast<size_t>(fabric.devices);
  ways.hops.assign(devices, std::vector<int>(devices, -1));
  for (int to = 0; to < fabric.devices; ++to) {
    if (ways.ranks_on[static_cast<size_t>(to)].empty()) continue;
    std::vector<int>& hops = ways.hops[static_cast<size_t>(to)];
    std::vector<int> reached{to};
    hops[static_cast<size_t>(to)] = 0;
    for (size_t i = 0; i < reached.size(); ++i) {
      for (int from = 0; from < fabric.devices; ++from) {
        if (hops[static_cast<size_t>(from)] >= 0 || ways.ranks_on[static_cast<size_t>(from)].empty()) continue;
        if (!fabric.linked(from, reached[i])) continue;
        hops[static_cast<size_t>(from)] = hops[static_cast<size_t>(reached[i])] + 1;
        reached.push_back(from);
      }
    }
  }
}

// Of the ranks on a device, the one that forwards to `to`, so that they share the work.
Rank RankRoutes::on_device(const HostWays& ways, int device, Rank to) const {
  const Place& place = topology_.ranks[static_cast<size_t>(to)];
  if (place.device == device) return to;
  const std::vector<Rank>& ranks = ways.ranks_on[static_cast<size_t>(device)];
  return ranks[static_cast<size_t>(place.local) % ranks.size()];
}

Hop RankRoutes::next(Rank at, Rank to) const {
  if (topology_.linked(at, to) && lanes_ == 0) return {to, 0};
  if (lanes_ == 0) return {};
  const Place& here = topology_.ranks[static_cast<size_t>(at)];
  const Place& there = topology_.ranks[static_cast<size_t>(to)];
  if (here.host != there.host || here.device == there.device) return {to, 0};
  const HostWays& ways = hosts_[static_cast<size_t>(here.host)];
  const std::optional<Fabric>& fabric = topology_.hosts[static_cast<size_t>(here.host)].imposed;
  if (ways.is_grid) {
    const bool closed = fabric->shape != Fabric::Shape::Chain;
    const GridStep step = step_in_grid(fabric->dims, closed, here.device, there.device);
    return {on_device(ways, step.to, to), closed && !step.passes_end ? 1 : 0};
  }
  if (ways.hops.empty()) return topology_.linked(at, to) ? Hop{to, 0} : Hop{};
  const std::vector<int>& hops = ways.hops[static_cast<size_t>(there.device)];
  const int left = hops[static_cast<size_t>(here.device)] - 1;
  for (int device = 0; device < fabric->devices && left >= 0; ++device) {
    if (hops[static_cast<size_t>(device)] == left && fabric->linked(here.device, device))
      return {on_device(ways, device, to), left};
  }
  return {};
}

std::vector<Hop> RankRoutes::path(Rank from, Rank to) const {
  std::vector<Hop> hops;
  for (Rank at = from; at != to; at = hops.back().to) {
    hops.push_back(next(at, to));
    if (hops.back().to < 0) return {};
  }
  return hops;
}

}  // namespace ccom
