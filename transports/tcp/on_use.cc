// SPDX-License-Identifier: Apache-2.0
//
// Channels that are connected when they are asked for: what is remembered of all peers until then, and what goes on
// while some are being connected.
#include <algorithm>
#include <exception>
#include <iterator>

#include "base/descriptor_limit.h"
#include "transports/tcp/tcp_transport.h"

namespace ccom::tcp {
namespace {

// What connecting takes, beside the connections.
constexpr size_t kConnectDescriptors = 12;

}  // namespace

void TcpTransport::remember(std::span<const Peer> peers) {
  std::vector<const Peer*> ascending;
  for (const Peer& peer : peers) ascending.push_back(&peer);
  std::ranges::sort(ascending, {}, &Peer::rank);
  for (const Peer* peer : ascending) {
    known_addresses_ += peer->address;
    known_.push_back({peer->rank, peer->channels, known_addresses_.size()});
  }
  known_.shrink_to_fit();
  known_addresses_.shrink_to_fit();
}

Status TcpTransport::begin_to_connect(Rank peer, int index) {
  const auto known = std::ranges::lower_bound(known_, peer, {}, &Known::rank);
  if (known == known_.end() || known->rank != peer || index < 0 || index >= known->channels)
    return error(Code::InvalidArgument, "rank %d has no tcp channel %d to rank %d", self_.rank, index, peer);
  const size_t begin = known == known_.begin() ? 0 : std::prev(known)->address_end;
  const Peer whom{peer, known_addresses_.substr(begin, known->address_end - begin), known->channels};
  CCOM_TRY(check_peer(whom));
  CCOM_TRY(make_room_for_descriptors(static_cast<size_t>(self_.streams) + kConnectDescriptors));
  try {
    if (connecting_ == nullptr) {
      connecting_ = std::make_unique<Connecting>();
      connecting_->setup = new_setup(connecting_->io);
    }
    make_channel(whom, index);
    return connecting_->setup->add(whom, index);
  } catch (const std::exception& thrown) {
    return library_error("connect", thrown);
  }
}

// Nothing listens, and nothing is left of it, once all channels that were asked for are connected.
Status TcpTransport::go_on_connecting() {
  try {
    CCOM_TRY(connecting_->setup->step());
    if (connecting_->setup->is_complete()) connecting_.reset();
    return Status::ok();
  } catch (const std::exception& thrown) {
    return library_error("connect", thrown);
  }
}

}  // namespace ccom::tcp
