// SPDX-License-Identifier: Apache-2.0
//
// The end of a peer for which this rank only waits. Liveness tells it as long as control connections join their hosts;
// once the ranks between them have left after their last call, nobody does. libfabric reports no end of a peer to which
// nothing is sent, so one that owes data or credit and has been silent for a second is sent an empty Grant, again and
// again at intervals that double to eight seconds: few messages wait for a peer that computes for hours. A send to a
// dead peer fails (sending.cc).
#include <algorithm>

#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {
namespace {

constexpr std::chrono::nanoseconds kLookInterval = std::chrono::milliseconds(100);
constexpr std::chrono::nanoseconds kFirstPause = std::chrono::seconds(1), kLongestPause = std::chrono::seconds(8);

}  // namespace

void OfiTransport::probe_silent_peers(Clock::time_point now) {
  look_at_ = now + kLookInterval;
  if (board_.stopped || !is_connected_) return;
  for (const auto& link : links_) {
    const auto is_open = [](const auto& channel) { return channel->has_receives() || channel->has_sends(); };
    if (std::ranges::none_of(link->channels, is_open) || link->is_dead || link->goodbye_count) continue;
    if (link->probe_pause.count() == 0) {
      link->probe_pause = kFirstPause;
      link->probe_at = now + kFirstPause;
    } else if (now >= link->probe_at) {
      link->probe_pause = std::min(2 * link->probe_pause, kLongestPause);
      link->probe_at = now + link->probe_pause;
      if (Status sent = probe(*link); board_.failed.is_ok()) board_.failed = std::move(sent);
    }
  }
}

// One that the provider still has is a probe, too.
Status OfiTransport::probe(Link& link) {
  OfiChannel& channel = *link.channels.front();
  return channel.grant.is_busy ? Status::ok() : send_control(link, channel.grant, Kind::Grant, &channel);
}

}  // namespace ccom::ofi
