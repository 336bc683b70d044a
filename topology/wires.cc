// SPDX-License-Identifier: Apache-2.0
#include "topology/wires.h"

#include <algorithm>

#include "base/assert.h"
#include "topology/shapes.h"

namespace ccom {
namespace {

// Breadth-first search from `to`, against the direction of the links.
std::vector<int> shortest_ways(const Fabric& fabric, int to) {
  const auto vertices = static_cast<size_t>(fabric.devices + fabric.switches);
  std::vector<std::vector<int>> into(vertices);
  for (const Link& link : fabric.links) into[static_cast<size_t>(link.to)].push_back(link.from);
  std::vector<int> next(vertices, -1);
  std::vector<int> reached{to};
  next[static_cast<size_t>(to)] = to;
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const int from : into[static_cast<size_t>(reached[i])]) {
      if (next[static_cast<size_t>(from)] >= 0) continue;
      next[static_cast<size_t>(from)] = reached[i];
      reached.push_back(from);
    }
  }
  return next;
}

uint32_t link_index(const Fabric& fabric, int from, int to) {
  const auto at = std::ranges::lower_bound(fabric.links, std::pair(from, to), {},
                                           [](const Link& link) { return std::pair(link.from, link.to); });
  CCOM_ASSERT(at != fabric.links.end() && at->from == from && at->to == to);
  return static_cast<uint32_t>(at - fabric.links.begin());
}

LinkSpeed half_latency(LinkSpeed speed) {
  speed.latency_ns /= 2;
  return speed;
}

}  // namespace

Wires::Wires(const Topology& topology) : topology_(topology) {
  std::vector<uint32_t> ranks(topology.hosts.size());
  for (const Place& place : topology.ranks) ++ranks[static_cast<size_t>(place.host)];
  for (int host = 0; host < static_cast<int>(topology.hosts.size()); ++host) {
    add_host(host, ranks[static_cast<size_t>(host)]);
  }
  add_racks();
}

void Wires::add_racks() {
  first_rack_ = count();
  rack_of_ = topology_.rack_numbers();
  for (const RackUplinks& uplinks : topology_.rack_uplinks()) {
    wires_.resize(wires_.size() + 2, {half_latency(uplinks.speed)});
  }
}

void Wires::add_host(int host, uint32_t ranks) {
  const auto& imposed = topology_.hosts[static_cast<size_t>(host)].imposed;
  HostWires& added = hosts_.emplace_back();
  added.fabric = imposed ? &*imposed : nullptr;
  added.first = count();
  if (imposed) {
    for (const Link& link : imposed->links) wires_.push_back({link.speed});
    const bool is_known =
        host > 0 && hosts_[hosts_.size() - 2].fabric != nullptr && *hosts_[hosts_.size() - 2].fabric == *imposed;
    if (!is_known) routes_.emplace_back();
    added.routes = routes_.size() - 1;
  }
  added.ports = count();
  wires_.resize(wires_.size() + ranks, {imposed ? imposed->inside_device : topology_.memory});
  // The last one is for devices without an uplink.
  std::vector<Uplink> uplinks = imposed ? imposed->uplinks : std::vector<Uplink>{};
  added.uplink_of.assign(imposed ? static_cast<size_t>(imposed->devices) : 1, static_cast<uint32_t>(uplinks.size()));
  for (uint32_t i = 0; i < uplinks.size(); ++i) {
    for (const int device : uplinks[i].devices) added.uplink_of[static_cast<size_t>(device)] = i;
  }
  uplinks.push_back({{}, topology_.network, 0});
  for (uint32_t* const ways : {&added.ways_out, &added.ways_in}) {
    *ways = count();
    for (const Uplink& uplink : uplinks) wires_.push_back({half_latency(uplink.speed), uplink.post_ns});
  }
}

int Wires::next_vertex(const HostWires& host, int at, int to) const {
  const Fabric& fabric = *host.fabric;
  switch (fabric.shape) {
    case Fabric::Shape::Ring:
    case Fabric::Shape::Torus: return step_in_grid(fabric.dims, true, at, to).to;
    case Fabric::Shape::Chain: return step_in_grid(fabric.dims, false, at, to).to;
    case Fabric::Shape::Switch: return at == fabric.devices ? to : fabric.devices;
    case Fabric::Shape::Full: return to;
    default: break;
  }
  std::vector<Tree>& trees = routes_[host.routes];
  trees.resize(static_cast<size_t>(fabric.devices));
  Tree& tree = trees[static_cast<size_t>(to)];
  if (tree.empty()) tree = shortest_ways(fabric, to);
  return tree[static_cast<size_t>(at)];
}

void Wires::through_fabric(const HostWires& host, int from, int to, std::vector<uint32_t>& wires) const {
  for (int at = from; at != to;) {
    const int next = next_vertex(host, at, to);
    CCOM_ASSERT(next >= 0);  // not connected: the planner does not send there
    wires.push_back(host.first + link_index(*host.fabric, at, next));
    at = next;
  }
}

void Wires::path(Rank a, Rank b, std::vector<uint32_t>& wires) const {
  CCOM_ASSERT(a != b && std::min(a, b) >= 0 && std::max(a, b) < topology_.nranks());
  const Place& from = topology_.ranks[static_cast<size_t>(a)];
  const Place& to = topology_.ranks[static_cast<size_t>(b)];
  const HostWires& host = hosts_[static_cast<size_t>(from.host)];
  if (from.host != to.host) {
    const HostWires& other = hosts_[static_cast<size_t>(to.host)];
    const auto uplink = [](const HostWires& at, const Place& place) {
      return at.uplink_of[at.fabric != nullptr ? static_cast<size_t>(place.device) : 0];
    };
    wires.push_back(host.ways_out + uplink(host, from));
    const int out = rack_of_[static_cast<size_t>(from.host)], in = rack_of_[static_cast<size_t>(to.host)];
    if (out != in && out >= 0) wires.push_back(first_rack_ + 2 * static_cast<uint32_t>(out));
    if (out != in && in >= 0) wires.push_back(first_rack_ + 2 * static_cast<uint32_t>(in) + 1);
    wires.push_back(other.ways_in + uplink(other, to));
  } else if (host.fabric == nullptr || from.device == to.device) {
    wires.push_back(host.ports + static_cast<uint32_t>(from.local));
  } else {
    through_fabric(host, from.device, to.device, wires);
  }
}

double Wires::latency_ns(Rank a, Rank b) const {
  std::vector<uint32_t> wires;
  path(a, b, wires);
  double sum = 0;
  for (const uint32_t wire : wires) sum += wires_[wire].speed.latency_ns;
  return sum;
}

std::string Wires::name(uint32_t wire) const {
  if (is_rack(wire)) {
    const uint32_t way = wire - first_rack_;
    return "rack " + std::to_string(way / 2) + (way % 2 == 0 ? " out" : " in");
  }
  const auto after = std::ranges::upper_bound(hosts_, wire, {}, &HostWires::first);
  const auto index = static_cast<size_t>(after - hosts_.begin()) - 1;
  const HostWires& host = hosts_[index];
  const std::string where = "host " + std::to_string(index) + " ";
  if (wire < host.ports) {
    const Link& link = host.fabric->links[wire - host.first];
    return where + "link " + std::to_string(link.from) + "->" + std::to_string(link.to);
  }
  if (wire < host.ways_out) return where + "port of local rank " + std::to_string(wire - host.ports);
  const bool out = wire < host.ways_in;
  return where + "uplink " + std::to_string(wire - (out ? host.ways_out : host.ways_in)) + (out ? " out" : " in");
}

std::string kind_of(const std::string& wire_name) {
  if (wire_name.starts_with("rack ")) return "rack";
  const size_t start = wire_name.find(' ', wire_name.find(' ') + 1) + 1;
  return wire_name.substr(start, wire_name.find(' ', start) - start);
}

}  // namespace ccom
