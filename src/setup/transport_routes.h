// SPDX-License-Identifier: Apache-2.0
//
// Which kind of transport leads to which peer. Pure; functions of the topology and the settings, so that both ends of a
// pair agree.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "setup/config.h"
#include "topology/rank_routes.h"
#include "topology/topology.h"

namespace ccom {

struct TransportRoutes {
  std::vector<std::string> names;  // "shm", "tcp", "ofi": those that are needed
  std::vector<int> of;             // by peer: index into names; -1: none, this rank or no link of the fabric

  bool uses(const std::string& name) const;
};

// Per peer the first transport of the settings' list that can reach it: shm only inside a host. ConfigError if none
// can. imitated: as for CommSetup::connect(); its links are those that there are.
Result<TransportRoutes> choose_routes(const CommConfig& config, const Topology& topology, const Topology& imitated,
                                      Rank rank);

// Channels between two ranks for messages: none, those of messages alone, or the lanes of forwarding besides.
int message_channels(const CommConfig& config, const RankRoutes& ways);

// Whether connections between ranks wait for their first use.
bool connects_on_use(const CommConfig& config, int nranks);

// Several ranks are on this rank's host, and transport shm leads to them.
bool uses_shm(const CommConfig& config, const Topology& topology, Rank rank);
// And collectives may use their memory freely: no fabric is imposed.
bool shares_memory_freely(const CommConfig& config, const Topology& topology, Rank rank);

}  // namespace ccom
