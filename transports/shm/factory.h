// SPDX-License-Identifier: Apache-2.0
//
// Transport between the ranks of one host, through rings in a shared segment. Start here: layout.h says what lies in
// the segment, outgoing.h and incoming.h move messages through one ring, shm_transport.h puts them together.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "memory/shared_segment.h"
#include "transports/transport.h"

namespace ccom {

// What a message occupies of an imitated fabric. Times are those of this machine: the fabric's, slowed down.
struct ShmWire {
  uint32_t line = 0;  // which of the fabric's
  double ns_per_byte = 0;
  double latency_ns = 0;
  double post_ns = 0;  // the least that a message keeps it busy
};

// A fabric whose speeds are imitated, as one rank sees it. See pacer.h.
struct ShmFabric {
  size_t offset_bytes = 0;                 // of the wires' clocks in the segment; a multiple of 4096
  uint32_t lines = 0;                      // how many wires; shm_wires_bytes() of the segment are theirs
  double post_ns = 0;                      // that this rank takes to start a message
  std::vector<std::vector<ShmWire>> ways;  // from it, by position in local_ranks; empty where no channel leads
};

struct ShmConfig {
  Rank rank = -1;                    // this one
  std::vector<Rank> local_ranks;     // all ranks of the communicator on this host, ascending, the same list everywhere
  SharedSegment* segment = nullptr;  // outlives the transport
  size_t offset_bytes = 0;           // of the region in the segment; a multiple of 4096
  int channels = 1;                  // the most that any pair will use, 1 to kMaxChannels; the same everywhere
  size_t ring_bytes = 0;             // per ordered pair and channel: a power of two, at least 4096; the same everywhere
  const ShmFabric* fabric = nullptr;  // copied; null everywhere, or the same fabric everywhere
};

// How much of the segment a transport among `local_ranks` takes: the whole region, and the part at its front that is
// reserved at once. Rings behind it take memory when their sender first uses them. Zeroed memory is a valid region; one
// region serves one set of transports, once.
size_t shm_region_bytes(int local_ranks, int channels, size_t ring_bytes);
size_t shm_header_bytes(int local_ranks, int channels);
// The clocks of a fabric's wires. Several transports in one segment may share them.
size_t shm_wires_bytes(uint32_t wires);
// Payload that went over each wire so far; nothing before the first transport was made.
std::vector<uint64_t> shm_wire_traffic(const SharedSegment& segment, const ShmFabric& fabric);
// 256 KiB, or less if a rank that uses all its rings would exceed max_memory_bytes; never less than 4 KiB.
size_t default_ring_bytes(int local_ranks, int channels, size_t max_memory_bytes);

// InvalidArgument for a config that breaks a rule above, OutOfMemory if the header does not fit into memory.
Result<std::unique_ptr<Transport>> make_shm_transport(const ShmConfig& config);

}  // namespace ccom
