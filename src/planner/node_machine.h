// SPDX-License-Identifier: Apache-2.0
//
// Hosts of a topology as the machines that stages inside them are priced on. Pure.
#pragma once

#include <vector>

#include "algorithms/node_cost.h"
#include "base/measured_costs.h"
#include "topology/topology.h"

namespace ccom {

// What was measured, in place of what has the same name.
MemoryCosts with_measured(MemoryCosts costs, const OwnCosts& measured);

// Refers to itself: not to be copied.
struct HostMachine {
  HostMachine(const Topology& topology, int host);
  // Where the topology's costs are the defaults, by what its ranks have measured.
  HostMachine(const Topology& topology, int host, const MeasuredCosts& measured);
  HostMachine(const HostMachine&) = delete;
  HostMachine& operator=(const HostMachine&) = delete;

  std::vector<int> domains;  // of memory, by local rank; empty: one, or not known
  NodeMachine machine;
};

}  // namespace ccom
