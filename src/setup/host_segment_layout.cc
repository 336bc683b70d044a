// SPDX-License-Identifier: Apache-2.0
#include "setup/host_segment_layout.h"

#include <algorithm>

#include "liveness/monitor.h"
#include "messages/messages.h"
#include "setup/transport_routes.h"
#include "topology/wires.h"
#include "transports/shm/factory.h"

namespace ccom {
namespace {

constexpr size_t kPage = 4096;

// Tiles of this size stay in a second-level cache and are long enough to hide a barrier.
constexpr size_t kBankBytes = size_t{256} << 10;

// Messages of a communicator are few beside its collectives; larger rings gain little.
constexpr size_t kMessageRingBytes = size_t{128} << 10;

size_t round_to_page(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// A rank's staging takes at most an eighth of its memory.
size_t bank_bytes_for(int ranks, size_t max_memory_bytes) {
  NodeLayout layout{ranks, kBankBytes};
  while (layout.bank_bytes > 4 * kPage && layout.staging_bytes() > max_memory_bytes / 8) layout.bank_bytes /= 2;
  return layout.bank_bytes;
}

size_t rings_bytes(int ranks, int channels, size_t ring_bytes) {
  return channels == 0 ? 0 : shm_region_bytes(ranks, channels, ring_bytes);
}

// Appends a region to the segment.
HostSegmentLayout::Region append(HostSegmentLayout& layout, size_t offset_bytes, size_t bytes) {
  const HostSegmentLayout::Region region{offset_bytes + layout.size_bytes, round_to_page(bytes)};
  layout.size_bytes += region.size_bytes;
  return region;
}

}  // namespace

HostSegmentNeeds segment_needs(const CommConfig& config, const Topology& topology, const Topology& imitated, Rank rank,
                               const std::vector<int>& channels) {
  const std::vector<Rank> local_ranks = topology.ranks_of(topology.ranks[static_cast<size_t>(rank)].host);
  HostSegmentNeeds needs;
  needs.ranks = static_cast<int>(local_ranks.size());
  needs.max_memory_bytes = static_cast<size_t>(config.max_memory);
  needs.has_collectives = shares_memory_freely(config, topology, rank);
  if (!uses_shm(config, topology, rank)) return needs;
  for (const Rank peer : local_ranks) {
    if (peer != rank) needs.plan_channels = std::max(needs.plan_channels, channels[static_cast<size_t>(peer)]);
  }
  needs.message_channels = message_channels(config, RankRoutes(imitated));
  if (config.emulate_scale > 0) needs.wires = Wires(imitated).count();
  return needs;
}

HostSegmentLayout lay_out(const HostSegmentNeeds& needs, size_t offset_bytes) {
  const int ranks = needs.ranks;
  const size_t most = needs.max_memory_bytes;
  HostSegmentLayout layout;
  layout.plan_ring_bytes = default_ring_bytes(ranks, needs.plan_channels, most);
  layout.message_ring_bytes = std::min(default_ring_bytes(ranks, needs.message_channels, most / 4), kMessageRingBytes);
  layout.node = {ranks, bank_bytes_for(ranks, most)};
  layout.board = append(layout, offset_bytes, Monitor::board_bytes(ranks));
  layout.plan_rings = append(layout, offset_bytes, rings_bytes(ranks, needs.plan_channels, layout.plan_ring_bytes));
  layout.message_rings =
      append(layout, offset_bytes, rings_bytes(ranks, needs.message_channels, layout.message_ring_bytes));
  layout.collectives = append(layout, offset_bytes, needs.has_collectives ? layout.node.region_bytes() : 0);
  layout.wires = append(layout, offset_bytes, needs.wires > 0 ? shm_wires_bytes(needs.wires) : 0);
  const size_t header = needs.plan_channels > 0 ? shm_header_bytes(ranks, needs.plan_channels) : 0;
  layout.reserve_bytes = layout.board.size_bytes + header;
  return layout;
}

}  // namespace ccom
