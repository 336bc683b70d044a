// SPDX-License-Identifier: Apache-2.0
//
// A topology as numbered wires: what a message from one rank to another occupies, one after another.
//
// A wire carries one direction and one message at a time. Each host has, in this order, the links of its imposed
// fabric, one port per rank into the memory that it shares with others (of its device, or of its host if no fabric is
// imposed), and its ways out to the network and in from it. The network between hosts is never the bottleneck. Ways
// through a fabric are shortest; in a ring or torus dimension by dimension, the fastest-running one first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/topology.h"

namespace ccom {

struct Wire {
  LinkSpeed speed;
  double post_ns = 0;  // that each message keeps it busy besides its bytes
};

// Belongs to one thread: routes through irregular fabrics are found when first asked for.
class Wires {
 public:
  // `topology` outlives it.
  explicit Wires(const Topology& topology);

  uint32_t count() const { return static_cast<uint32_t>(wires_.size()); }
  const Wire& operator[](uint32_t wire) const { return wires_[wire]; }
  // Appends the wires from `a` to `b`, two different ranks. Goes through other devices whether or not the fabric is
  // routed.
  void path(Rank a, Rank b, std::vector<uint32_t>& wires) const;
  double latency_ns(Rank a, Rank b) const;  // summed over the path
  std::string name(uint32_t wire) const;    // "host 0 link 3->7", "host 0 rank 5 out", "host 2 uplink 1 in"

 private:
  struct HostWires {
    const Fabric* fabric = nullptr;
    uint32_t first = 0, ports = 0, ways_out = 0, ways_in = 0;  // where each kind starts
    std::vector<uint32_t> uplink_of;                           // by device; without a fabric one for all
    size_t routes = 0;
  };
  // Towards one device: by vertex, the next vertex on the way.
  using Tree = std::vector<int>;

  void add_host(int host, uint32_t ranks);
  void through_fabric(const HostWires& host, int from, int to, std::vector<uint32_t>& wires) const;
  int next_vertex(const HostWires& host, int at, int to) const;

  const Topology& topology_;
  std::vector<Wire> wires_;
  std::vector<HostWires> hosts_;
  mutable std::vector<std::vector<Tree>> routes_;  // by fabric, by destination
};

// Of a name: "host 3 uplink 1 in" is an "uplink", others are a "link" or a "port".
std::string kind_of(const std::string& wire_name);

}  // namespace ccom
