// SPDX-License-Identifier: Apache-2.0
//
// What carries messages: channels to ranks that are linked, and a relay to others.
#include "setup/comm_setup.h"

namespace ccom {

// Lanes are for ranks of the host alone.
int CommSetup::message_channels_to(Rank peer) const {
  const auto host = [this](Rank rank) { return topology_.ranks[static_cast<size_t>(rank)].host; };
  if (host(peer) == host(membership_.rank)) return message_channels(config_, ways_);
  return config_.messages ? MessageRoutes::kChannels : 0;
}

Result<std::optional<MessageRoutes>> CommSetup::message_routes() {
  if (messages_ == nullptr) return std::optional<MessageRoutes>();
  MessageRoutes routes{membership_.rank, messages_->transports(), {}};
  for (Rank peer = 0; peer < membership_.nranks; ++peer) {
    MessageRoutes::Route route;
    route.transport = messages_->transport_of(peer);
    if (route.transport >= 0) {
      CCOM_TRY_ASSIGN(route.headers, messages_->channel(peer, 0));
      CCOM_TRY_ASSIGN(route.payload, messages_->channel(peer, 1));
    }
    routes.by_peer.push_back(route);
  }
  if (ways_.lanes() > 0) CCOM_TRY(forward(routes));
  return std::optional(std::move(routes));
}

// What leads to ranks of this host carries messages to those that are not linked, too, through a relay.
Status CommSetup::forward(MessageRoutes& routes) {
  RelayConfig config{.rank = membership_.rank,
                     .nranks = membership_.nranks,
                     .lanes = ways_.lanes(),
                     .most_piece_bytes = kMostPieceBytes};
  for (const Rank peer : local_ranks_) {
    if (messages_->transport_of(peer) < 0) continue;
    config.neighbours.push_back(peer);
    routes.forwarding = messages_->transport_of(peer);
  }
  if (config.neighbours.empty()) return {};
  config.next = [this](Rank to) {
    const Hop hop = ways_.next(membership_.rank, to);
    return RelayConfig::Next{hop.to, hop.lane};
  };
  config.piece_bytes = [this](Rank to, size_t message_bytes) {
    return forwarded_piece_bytes(message_bytes, static_cast<int>(ways_.path(membership_.rank, to).size()));
  };
  Transport*& carrying = routes.transports[static_cast<size_t>(routes.forwarding)];
  CCOM_TRY_ASSIGN(relay_, Relay::create(*carrying, std::move(config)));
  carrying = relay_.get();
  for (const Rank peer : local_ranks_) {
    MessageRoutes::Route& route = routes.by_peer[static_cast<size_t>(peer)];
    if (peer == membership_.rank || route.transport >= 0 || ways_.path(membership_.rank, peer).empty()) continue;
    route.transport = routes.forwarding;
    CCOM_TRY_ASSIGN(route.headers, relay_->channel(peer, 0));
    CCOM_TRY_ASSIGN(route.payload, relay_->channel(peer, 1));
  }
  return {};
}

}  // namespace ccom
