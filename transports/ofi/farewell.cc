// SPDX-License-Identifier: Apache-2.0
//
// Leaving without loss. A send is reported complete when the provider has completed its fragments. With EFA that means:
// they are with the peer. With TCP: they are with the kernel, which delivers them even after we are gone, unless the
// peer sends us something meanwhile and is answered by a reset. So:
//
// 1. What is still with the provider completes there (at most one second).
// 2. So each peer is told Goodbye{fragments sent} and answers when it has all of them. A peer that makes no progress
// cannot
//    answer, nor does it send: it is given a moment only.
//
// Whoever has got a Goodbye sends nothing more, waits for nothing more, and knows what can never complete.
#include <algorithm>

#include "base/log.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {
namespace {

constexpr auto kDrainTime = std::chrono::seconds(1);
constexpr auto kAnswerTime = std::chrono::milliseconds(200);   // of peers, once all is with the provider
constexpr auto kCourtesyTime = std::chrono::milliseconds(20);  // for Goodbye and Acknowledge, when nothing else is owed
constexpr auto kSlice = std::chrono::milliseconds(5);

bool is_present(const Link& link) { return link.is_connected() && !link.is_dead; }
bool is_owed(const Link& link) { return is_present(link) && !link.farewell && link.acknowledged < link.sent; }
bool is_draining(const Link& link) { return is_owed(link) && link.unfinished > 0; }
bool is_talking(const Link& link) { return is_present(link) && link.unfinished > 0; }

}  // namespace

void OfiTransport::farewell() {
  for (const auto& link : links_) {
    if (!is_present(*link) || link->farewell) continue;
    (void)send_control(*link, link->goodbye, Kind::Goodbye, nullptr);  // a failure marks the link dead
  }
  const auto any = [this](bool (*holds)(const Link&)) {
    return std::ranges::any_of(links_, [holds](const auto& link) { return holds(*link); });
  };
  const Deadline drain = Deadline::after(kDrainTime);
  auto quiet_since = Clock::now();  // no data is with the provider any more
  while (any(is_talking) || any(is_owed)) {
    (void)advance();
    const auto now = Clock::now();
    if (any(is_draining)) {
      if (drain.passed()) break;
      quiet_since = now;
    } else if (now - quiet_since >= (any(is_owed) ? kAnswerTime : kCourtesyTime)) {
      break;
    }
    wait(kSlice);
  }
  if (any(is_draining)) log(LogLevel::Warn, "ofi: rank %d left before all it had sent was on its way", config_.rank);
}

Status OfiTransport::on_goodbye(Link& link, uint64_t sent) {
  link.farewell = sent;
  for (const auto& channel : link.channels) channel->schedule();
  return acknowledge_farewell(link);
}

// The peer waits for it only if it has not heard of every fragment.
Status OfiTransport::acknowledge_farewell(Link& link) {
  if (!link.farewell || link.arrived < *link.farewell) return Status::ok();
  for (const auto& channel : link.channels) channel->schedule();  // what is missing now stays missing
  if (link.announced >= link.arrived || link.acknowledge.is_busy || link.is_dead) return Status::ok();
  return send_control(link, link.acknowledge, Kind::Acknowledge, nullptr);
}

// Nothing more is sent to this peer.
void OfiTransport::mark_dead(Link& link) {
  link.is_dead = true;
  for (WriteOperation& operation : link.writes) link.unfinished -= operation.is_busy ? 1 : 0;
  rails_->drop(link);
  for (const WriteOperation& operation : link.writes) link.unfinished += operation.is_busy ? 1 : 0;
  for (SendOperation* operation : std::exchange(link.outbox, {})) {
    operation->is_busy = false;
    --link.unfinished;
  }
}

}  // namespace ccom::ofi
