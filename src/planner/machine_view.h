// SPDX-License-Identifier: Apache-2.0
//
// Hosts as shapes and prices of messages see them: joined inside by an imposed fabric or by their memory, occupied
// alike by ranks or not.
#pragma once

#include <vector>

#include "topology/topology.h"

namespace ccom {

// Where a rank is.
struct Spot {
  int host = 0, device = 0, core = 0;
};

struct MachineView {
  const Fabric* fabric = nullptr;  // of the first host that one is imposed on; null: memory joins the ranks of a host
  bool follows_fabric = false;     // all hosts have that one, and are occupied alike
  int nranks = 1;
  int hosts = 1;
  int devices = 1;     // of a host that ranks are on: its first ones; 1 without a fabric
  int cores = 1;       // ranks on each of them; where that differs, the most with a fabric, the least without one
  int most_ranks = 1;  // of a host
  // By host, device, core.
  std::vector<std::vector<std::vector<Rank>>> ranks;
  // The devices as a grid whose lines are rings, if they are one: {4, 4}; one dimension for a ring.
  std::vector<int> dims;
  std::vector<LinkSpeed> dim_speeds;  // of a link of each dimension: the slowest
  bool all_linked = true;             // any two devices of a host exchange messages
  bool in_line = true;                // each device and the next one are linked
  std::vector<int> host_order;        // hosts of one rack side by side
  bool has_racks = false;             // hosts of several, or some in none
  int hosts_per_rack = 0;             // where all hosts are in racks, each of which has as many; else 0

  Rank rank(int host, int device, int core) const {
    return ranks[static_cast<size_t>(host)][static_cast<size_t>(device)][static_cast<size_t>(core)];
  }
  Spot spot(Rank rank) const;
  // Of the grid: links between two devices on average; links out of a device.
  double mean_hops() const;
  double ports() const;
  // For each host and core the ranks by device: the groups of a level between devices.
  std::vector<std::vector<Rank>> device_groups() const;
  // For each host and device its ranks.
  std::vector<std::vector<Rank>> core_groups() const;
  // For each device and core the ranks by host, in host_order.
  std::vector<std::vector<Rank>> host_groups() const;
};

// Refers to `topology`.
MachineView machine_view(const Topology& topology);

}  // namespace ccom
