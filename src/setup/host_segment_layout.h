// SPDX-License-Identifier: Apache-2.0
//
// What lies where in the segment that the ranks of a host share. Pure; the same on all ranks of the host, since it
// follows from the topology and the settings alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "node/layout.h"
#include "setup/config.h"
#include "topology/topology.h"

namespace ccom {

// What the segment is to hold.
struct HostSegmentNeeds {
  int ranks = 1;                 // of the communicator on this host
  int plan_channels = 0;         // of transport shm between two ranks, for plans; 0: none
  int message_channels = 0;      // likewise for messages
  bool has_collectives = false;  // through memory, without messages
  uint32_t wires = 0;            // of the fabric that transport shm imitates
  size_t max_memory_bytes = 0;   // of a rank

  friend bool operator==(const HostSegmentNeeds&, const HostSegmentNeeds&) = default;
};

// imitated: as for CommSetup::connect(). channels: of plans, by peer.
HostSegmentNeeds segment_needs(const CommConfig& config, const Topology& topology, const Topology& imitated, Rank rank,
                               const std::vector<int>& channels);

// A value. Regions begin on pages and do not overlap; what is not needed is empty.
struct HostSegmentLayout {
  struct Region {
    size_t offset_bytes = 0;
    size_t size_bytes = 0;
    size_t end_bytes() const { return offset_bytes + size_bytes; }
    friend bool operator==(const Region&, const Region&) = default;
  };

  Region board;          // of the monitor
  Region plan_rings;     // of transport shm, for plans
  Region message_rings;  // and for messages
  Region collectives;    // of ShmCollectives
  Region wires;          // clocks of the imitated fabric
  size_t plan_ring_bytes = 0;
  size_t message_ring_bytes = 0;
  NodeLayout node;           // what lies where in `collectives`
  size_t reserve_bytes = 0;  // at the front, to be taken at once; the rest is taken when first used
  size_t size_bytes = 0;
};

// At `offset_bytes` of a segment, where there is more in it.
HostSegmentLayout lay_out(const HostSegmentNeeds& needs, size_t offset_bytes = 0);

}  // namespace ccom
