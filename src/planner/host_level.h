// SPDX-License-Identifier: Apache-2.0
//
// Hosts with equally many ranks, as one rank sees them: what collectives through memory inside and messages across
// build on. Pure.
#pragma once

#include <optional>
#include <vector>

#include "topology/topology.h"

namespace ccom {

struct HostLevel {
  int hosts = 0;
  int ranks_per_host = 0;
  int host = 0;                  // of this rank
  int place = 0;                 // of this rank on its host
  std::vector<Rank> neighbours;  // all ranks of this host, by place
  std::vector<Rank> mates;       // of this place, by host
  bool in_order = false;         // rank = host * ranks_per_host + place
};

// Nothing for a single host, for hosts of one rank, of different numbers of ranks, or with an imposed fabric.
std::optional<HostLevel> host_level(const Topology& topology, Rank rank);

// Whether a collective of `bytes` (Question::bytes) can run that way: with blocks that belong to ranks only in_order;
// not Gather and Scatter; AllToAll as long as messages are short, for longer ones the copies inside cost more than the
// fewer messages save.
bool serves(const HostLevel& level, Collective collective, size_t bytes);

// The hosts as the ranks of one place see them: one rank each, with its share of the wire.
Topology across(const Topology& topology, const HostLevel& level);
// One host alone.
Topology inside(const Topology& topology, const HostLevel& level);

}  // namespace ccom
