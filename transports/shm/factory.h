// SPDX-License-Identifier: Apache-2.0
//
// Transport between the ranks of one host, through rings in a shared segment. Start here: layout.h describes the
// segment, outgoing.h and incoming.h move messages through one ring, shm_transport.h combines them.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "memory/shared_segment.h"
#include "transports/transport.h"

namespace ccom {

// The use of one wire by a message on an emulated fabric. Times are those of this machine: the fabric's, scaled.
struct ShmWire {
  uint32_t line = 0;  // index of the wire
  double ns_per_byte = 0;
  double latency_ns = 0;
  double post_ns = 0;  // minimum time that a message occupies it
};

// The emulated fabric as seen by one rank. See pacer.h.
struct ShmFabric {
  size_t offset_bytes = 0;                 // of the wires' clocks in the segment; a multiple of 4096
  uint32_t lines = 0;                      // number of wires, in shm_wires_bytes() of the segment
  double post_ns = 0;                      // time for this rank to start a message
  double reduce_ns_per_byte = 0;           // that reductions read; two bytes for each that arrives
  std::vector<std::vector<ShmWire>> ways;  // routes, by position in local_ranks; empty without a channel
};

struct ShmConfig {
  Rank rank = -1;                     // of this process
  std::vector<Rank> local_ranks;      // all ranks of the communicator on this host, ascending, equal everywhere
  SharedSegment* segment = nullptr;   // must outlive the transport
  size_t offset_bytes = 0;            // of the region in the segment; a multiple of 4096
  int channels = 1;                   // maximum per pair, 1 to kMaxChannels; equal everywhere
  size_t ring_bytes = 0;              // per ordered pair and channel: a power of two, at least 4096; equal everywhere
  const ShmFabric* fabric = nullptr;  // copied; null everywhere, or the same fabric everywhere
};

// Segment memory of a transport among `local_ranks`: the whole region, and the part at its front that is reserved at
// once. The rings behind it use memory only when their sender first does. Zeroed memory is a valid region; one region
// serves one set of transports, once.
size_t shm_region_bytes(int local_ranks, int channels, size_t ring_bytes);
size_t shm_header_bytes(int local_ranks, int channels);
// The clocks of a fabric's wires. Transports in one segment may share them.
size_t shm_wires_bytes(uint32_t wires);
// Payload bytes per wire so far; empty before the first transport exists.
std::vector<uint64_t> shm_wire_traffic(const SharedSegment& segment, const ShmFabric& fabric);
// 256 KiB, or less if a rank that uses all its rings would exceed max_memory_bytes; at least 4 KiB.
size_t default_ring_bytes(int local_ranks, int channels, size_t max_memory_bytes);

// InvalidArgument for a config that breaks a rule above, OutOfMemory if the header cannot be allocated.
Result<std::unique_ptr<Transport>> make_shm_transport(const ShmConfig& config);

}  // namespace ccom
