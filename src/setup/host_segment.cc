// SPDX-License-Identifier: Apache-2.0
//
// What lies where in a host's segment, and its making by the host's leader.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "memory/process_segments.h"
#include "setup/comm_setup.h"
#include "setup/emulation.h"

namespace ccom {
namespace {

constexpr size_t kPage = 4096;
size_t round_to_page(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Tiles of this size stay in a second-level cache and are long enough to hide a meet.
constexpr size_t kBankBytes = size_t{256} << 10;

// Messages of a communicator are few beside its collectives; larger rings gain little.
constexpr size_t kMessageRingBytes = size_t{128} << 10;

// A rank's staging takes at most an eighth of its memory.
size_t default_bank_bytes(int ranks, size_t most_bytes) {
  NodeLayout layout{ranks, kBankBytes};
  while (layout.bank_bytes > 4 * kPage && layout.staging_bytes() > most_bytes / 8) layout.bank_bytes /= 2;
  return layout.bank_bytes;
}

}  // namespace

size_t CommSetup::board_bytes() const {
  return round_to_page(Monitor::board_bytes(static_cast<int>(local_ranks_.size())));
}

size_t CommSetup::message_rings_offset() const {
  const auto ranks = static_cast<int>(local_ranks_.size());
  return rings_offset() + (uses_shm() ? round_to_page(shm_region_bytes(ranks, shm_channels(), ring_bytes_)) : 0);
}

size_t CommSetup::node_offset() const {
  const auto ranks = static_cast<int>(local_ranks_.size());
  return message_rings_offset() +
         (uses_shm() && config_.messages
              ? round_to_page(shm_region_bytes(ranks, MessageRoutes::kChannels, message_ring_bytes_))
              : 0);
}

size_t CommSetup::fabric_offset() const { return node_offset() + (has_node() ? node_layout_.region_bytes() : 0); }

size_t CommSetup::segment_bytes() const { return fabric_offset() + (fabric_ ? shm_wires_bytes(fabric_->lines) : 0); }

Result<std::string> CommSetup::make_segment() {
  const auto ranks = static_cast<int>(local_ranks_.size());
  const auto most = static_cast<size_t>(config_.max_memory);
  ring_bytes_ = default_ring_bytes(ranks, shm_channels(), most);
  message_ring_bytes_ = std::min(default_ring_bytes(ranks, MessageRoutes::kChannels, most / 4), kMessageRingBytes);
  node_layout_ = {ranks, default_bank_bytes(ranks, most)};
  if (config_.emulate_scale > 0 && shares_memory()) {
    fabric_ = emulated_fabric(topology_, membership_.rank, config_.emulate_scale);
    fabric_->offset_bytes = fabric_offset();
  }
  node_join_ = std::make_unique<NodeJoin>(place(), membership_.secret.derive("ccom arena"));
  nlohmann::json offer{{"process", process_number()}, {"efa", can_use_efa()}};
  if (has_node()) offer["node"] = node_join_->introduce();
  if (!shares_memory()) {
    private_board_.resize(Monitor::board_bytes(1) + 128);
    return offer.dump();
  }
  if (!is_leader()) return offer.dump();
  const size_t reserve = board_bytes() + (uses_shm() ? shm_header_bytes(ranks, shm_channels()) : 0);
  CCOM_TRY_ASSIGN(segment_, SharedSegment::create(segment_bytes(), reserve));
  CCOM_TRY(make_monitor(segment_->bytes().first(board_bytes()), true));
  CCOM_TRY_ASSIGN(segment_server_, SegmentServer::create(membership_.secret.derive("ccom segment")));
  offer["segment"] = segment_server_->path();
  put_segment(segment_server_->path(), segment_);
  return offer.dump();
}

}  // namespace ccom
