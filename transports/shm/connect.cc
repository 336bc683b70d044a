// SPDX-License-Identifier: Apache-2.0
//
// Connecting: waits for all ranks and creates a channel object for every pair of rings.
#include <algorithm>

#include "base/backoff.h"
#include "base/text.h"
#include "transports/shm/doorbell.h"
#include "transports/shm/shm_transport.h"

namespace ccom::shm {
namespace {

constexpr WaitPolicy kBeforeNap{.spin = std::chrono::nanoseconds(0), .lone_yield = std::chrono::microseconds(20)};

}  // namespace

ShmTransport::ShmTransport(const ShmConfig& config, const Layout& layout, std::unique_ptr<Pacer> pacer)
    : segment_(*config.segment),
      offset_bytes_(config.offset_bytes),
      layout_(layout),
      local_rank_(static_cast<int>(std::ranges::find(config.local_ranks, config.rank) - config.local_ranks.begin())),
      channels_(config.local_ranks.size() * static_cast<size_t>(config.channels)),
      pacer_(std::move(pacer)) {
  for (size_t local_rank = 0; local_rank < config.local_ranks.size(); ++local_rank) {
    const auto at = static_cast<int>(local_rank);
    local_peers_.push_back({config.local_ranks[local_rank], at, &layout_.rank_lines(region(), at)});
  }
  sending_.reserve(channels_.size());
  receiving_.reserve(channels_.size());
  to_notify_.reserve(local_peers_.size());
  completed_.reserve(64);
}

int ShmTransport::local_rank_of(Rank rank) const {
  const auto found = std::ranges::lower_bound(local_peers_, rank, {}, &LocalPeer::rank);
  return found != local_peers_.end() && found->rank == rank ? static_cast<int>(found - local_peers_.begin()) : -1;
}

Status ShmTransport::connect(std::span<const Peer> peers, const WaitLimit& limit) {
  CCOM_TRY(check_peers(peers));
  is_connected_ = true;
  for (const Peer& peer : peers) make_channels(peer);
  my_lines().attached.store(layout_.fingerprint(), std::memory_order_release);
  for (const Peer& peer : peers) ring(*local_peers_[static_cast<size_t>(local_rank_of(peer.rank))].lines);
  return await_peers(peers, limit);
}

Status ShmTransport::check_peers(std::span<const Peer> peers) const {
  if (is_connected_) return error(Code::InvalidUsage, "shm: connect was called before");
  for (const Peer& peer : peers) {
    const int local_rank = local_rank_of(peer.rank);
    if (local_rank < 0 || local_rank == local_rank_ || peer.channels < 1 || peer.channels > layout_.channels) {
      return error(Code::InvalidArgument,
                   "shm: connect to rank %d with %d channels: not another rank of this host, or not 1 to "
                   "%d channels",
                   peer.rank, peer.channels, layout_.channels);
    }
  }
  return Status::ok();
}

void ShmTransport::make_channels(const Peer& peer) {
  const int local_rank = local_rank_of(peer.rank);
  for (int index = 0; index < peer.channels; ++index) {
    const size_t out = layout_.ring_index(local_rank_, local_rank, index);
    const size_t in = layout_.ring_index(local_rank, local_rank_, index);
    const ShmChannel::Ends ends{layout_.ring(region(), out), offset_bytes_ + layout_.ring_offset_bytes(out),
                                layout_.ring(region(), in), pacer_ != nullptr};
    channels_[static_cast<size_t>(local_rank * layout_.channels + index)] =
        std::make_unique<ShmChannel>(*this, local_peers_[static_cast<size_t>(local_rank)], ends);
  }
}

// Ranks that have not joined yet, ascending.
Result<std::vector<Rank>> ShmTransport::absent(std::span<const Peer> peers) const {
  std::vector<Rank> missing;
  for (const Peer& peer : peers) {
    const RankLines& lines = *local_peers_[static_cast<size_t>(local_rank_of(peer.rank))].lines;
    const uint32_t attached = lines.attached.load(std::memory_order_acquire);
    if (attached == 0) missing.push_back(peer.rank);
    if (attached != 0 && attached != layout_.fingerprint()) {
      return error(Code::ConfigError,
                   "shm: rank %d and rank %d have different ranks, channels or ring sizes for the shared "
                   "region",
                   local_peers_[static_cast<size_t>(local_rank_)].rank, peer.rank)
          .with_peers({peer.rank});
    }
  }
  std::ranges::sort(missing);
  return missing;
}

Status ShmTransport::await_peers(std::span<const Peer> peers, const WaitLimit& limit) {
  // Where ranks come from an exchange at the same time, the last of them is here soon.
  for (Backoff backoff(kBeforeNap);;) {
    CCOM_TRY_ASSIGN(const std::vector<Rank> early, absent(peers));
    if (early.empty()) return Status::ok();
    if (backoff.step() == Backoff::Next::Poll) continue;
    Nap sleep_slice(my_lines());
    CCOM_TRY_ASSIGN(const std::vector<Rank> missing, absent(peers));
    if (missing.empty()) return Status::ok();
    if (limit.is_reached()) {
      return error(Code::Timeout, "shm: connect rank %d: timed out waiting for %s",
                   local_peers_[static_cast<size_t>(local_rank_)].rank, name_ranks(missing).c_str())
          .with_peers(missing);
    }
    sleep_slice.sleep(limit.next_look().left());
  }
}

Result<Channel*> ShmTransport::channel(Rank peer, int index) {
  const int local_rank = local_rank_of(peer);
  ShmChannel* found = nullptr;
  if (local_rank >= 0 && index >= 0 && index < layout_.channels) {
    found = channels_[static_cast<size_t>(local_rank * layout_.channels + index)].get();
  }
  if (found == nullptr) return error(Code::InvalidArgument, "shm: no channel %d to rank %d", index, peer);
  return found;
}

}  // namespace ccom::shm
