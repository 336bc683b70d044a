// SPDX-License-Identifier: Apache-2.0
//
// A topology as numbered wires: the resources that a message between two ranks occupies, in order.
//
// A wire carries one direction and one message at a time. Each host has, in this order, the links of its imposed
// fabric, one port per rank to the memory it shares with others (of its device, or of its host without a fabric), and
// its uplinks out to and in from the network; behind the hosts each rack has one wire out to other racks and one in
// from them. The network core is never the bottleneck. Paths through a fabric are shortest; in a ring or torus
// dimension by dimension, the fastest-varying one first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/topology.h"

namespace ccom {

struct Wire {
  LinkSpeed speed;
  double post_ns = 0;  // occupied by each message in addition to its bytes
};

// Used by one thread: routes through irregular fabrics are computed on first use.
class Wires {
 public:
  // `topology` must outlive it.
  explicit Wires(const Topology& topology);

  uint32_t count() const { return static_cast<uint32_t>(wires_.size()); }
  const Wire& operator[](uint32_t wire) const { return wires_[wire]; }
  // Appends the wires from `a` to `b`, two different ranks. Traverses other devices whether or not the fabric is
  // routed.
  void path(Rank a, Rank b, std::vector<uint32_t>& wires) const;
  double latency_ns(Rank a, Rank b) const;  // summed over the path
  // "host 0 link 3->7", "host 0 port of local rank 5", "host 2 uplink 1 in", "rack 3 out"
  std::string name(uint32_t wire) const;
  // Whether it is one of a rack; these come last.
  bool is_rack(uint32_t wire) const { return wire >= first_rack_; }

 private:
  struct HostWires {
    const Fabric* fabric = nullptr;
    uint32_t first = 0, ports = 0, ways_out = 0, ways_in = 0;  // start of each kind
    std::vector<uint32_t> uplink_of;                           // by device; one for all without a fabric
    size_t routes = 0;
  };
  // Towards one device: the next vertex on the path, by vertex.
  using Tree = std::vector<int>;

  void add_host(int host, uint32_t ranks);
  void add_racks();
  void through_fabric(const HostWires& host, int from, int to, std::vector<uint32_t>& wires) const;
  int next_vertex(const HostWires& host, int at, int to) const;

  const Topology& topology_;
  std::vector<Wire> wires_;
  std::vector<HostWires> hosts_;
  std::vector<int> rack_of_;                       // by host
  uint32_t first_rack_ = 0;                        // way out, way in of each
  mutable std::vector<std::vector<Tree>> routes_;  // by fabric, by destination
};

// Of a name: "host 3 uplink 1 in" is an "uplink"; others are a "link", a "port" or a "rack".
std::string kind_of(const std::string& wire_name);

}  // namespace ccom
