// SPDX-License-Identifier: Apache-2.0
//
// Hosts that are joined alike inside by an imposed fabric and occupied alike by ranks: what the shapes and prices of
// fabric algorithms are made from.
#pragma once

#include <optional>
#include <vector>

#include "topology/topology.h"

namespace ccom {

struct FabricView {
  const Fabric* fabric = nullptr;
  int hosts = 1;
  int devices = 1;  // of a host that ranks are on: its first ones
  int cores = 1;    // ranks on each of them
  // By host, device, core.
  std::vector<std::vector<std::vector<Rank>>> ranks;
  // The devices as a grid whose lines are rings, if they are one: {4, 4}; one dimension for a ring.
  std::vector<int> dims;
  std::vector<LinkSpeed> dim_speeds;  // of a link of each dimension: the slowest
  bool all_linked = false;            // any two devices of a host exchange messages
  bool in_line = false;               // each device and the next one are linked

  int ranks_per_host() const { return devices * cores; }
  int nranks() const { return hosts * ranks_per_host(); }
  Rank rank(int host, int device, int core) const {
    return ranks[static_cast<size_t>(host)][static_cast<size_t>(device)][static_cast<size_t>(core)];
  }
  // Of the grid: links between two devices on average; links out of a device.
  double mean_hops() const;
  double ports() const;
  // For each host and core the ranks by device: the groups of a level between devices.
  std::vector<std::vector<Rank>> device_groups() const;
  // For each host and device its ranks.
  std::vector<std::vector<Rank>> core_groups() const;
  // For each device and core the ranks by host.
  std::vector<std::vector<Rank>> host_groups() const;
};

// Nothing without an imposed fabric, or where hosts differ. Refers to `topology`.
std::optional<FabricView> fabric_view(const Topology& topology);

}  // namespace ccom
