// SPDX-License-Identifier: Apache-2.0
//
// CCOM_EMULATE_SCALE: the imposed fabric with its speeds, slowed down. Here the topology's wires become what the shm
// transport paces. Of several hosts, too, which CCOM_TOPOLOGY names: their ranks are all on this one.
#pragma once

#include <optional>

#include "memory/shared_segment.h"
#include "setup/config.h"
#include "topology/topology.h"
#include "transports/shm/factory.h"

namespace ccom {

// NotSupported where some messages would not be paced. The same on every rank.
Status check_emulation(const CommConfig& config, const Topology& topology);

// The hosts that are imitated where CCOM_TOPOLOGY names several; nothing where it does not, or there is none. Planner
// and emulation see them, everything that connects ranks sees the one host that there is. ConfigError if they have not
// as many ranks.
Result<std::optional<Topology>> imitated_hosts(const Topology& topology);

// As `rank` sees it, all ranks being on one host; all but its offset. `scale`: that bandwidths are multiplied with and
// times divided by.
ShmFabric emulated_fabric(const Topology& topology, Rank rank, double scale);

// Debug lines: what went over each wire that was used.
void log_traffic(const Topology& topology, const SharedSegment& segment, const ShmFabric& fabric);

}  // namespace ccom
