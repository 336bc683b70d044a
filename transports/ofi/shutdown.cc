// SPDX-License-Identifier: Apache-2.0
//
// Shutdown without loss of data. A send is reported complete when the provider has completed its fragments. With EFA
// they are then with the peer; with TCP they are with the kernel, which delivers them even after this process has
// exited, unless the peer sends something meanwhile and gets a reset. Therefore:
//
// 1. Operations that are still with the provider complete.
// 2. Each peer is sent Goodbye{fragments sent} and acknowledges when all of them have arrived.
//
// A rank that has received a Goodbye sends nothing more to that peer, waits for nothing from it, and knows which
// receives can never complete.
//
// stop() sends it already: after an error the process may live on, and a peer may wait for it without another way to
// hear of that error. If the rails were shut, it is a Stopped: payloads under way are lost, even some whose writes have
// completed (closing a socket with unread input), so the peer waits for their headers only.
#include <algorithm>
#include <new>

#include "base/log.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {
namespace {

// For 1. and 2. On a crowded machine a peer may get no core for some of it.
constexpr auto kDeliveryTime = std::chrono::seconds(1);
// For 2. after an error, when little of what is under way arrives anyhow.
constexpr auto kStoppedTime = std::chrono::milliseconds(200);
constexpr auto kGoodbyeTime =
    std::chrono::milliseconds(20);  // wait for Goodbye and Acknowledge, when nothing else is outstanding
constexpr auto kSlice = std::chrono::milliseconds(5);
// In stop(): for so long, and so often where other processes keep this one from its core for longer than that.
constexpr auto kTellTime = std::chrono::milliseconds(10);
constexpr int kTellAttempts = 50;

bool is_present(const Link& link) { return link.is_connected() && !link.is_dead; }
bool awaits_acknowledgement(const Link& link) {
  return is_present(link) && !link.goodbye_count && link.acknowledged < link.sent;
}
bool is_draining(const Link& link) { return awaits_acknowledgement(link) && link.unfinished > 0; }
bool is_talking(const Link& link) { return is_present(link) && link.unfinished > 0; }
bool is_telling(const Link& link) { return is_present(link) && link.goodbye.is_busy; }

}  // namespace

// Once per peer.
void OfiTransport::take_leave() {
  const Kind kind = rails_->is_shut() ? Kind::Stopped : Kind::Goodbye;
  for (const auto& link : links_) {
    if (link->is_told || !is_present(*link) || link->goodbye_count) continue;
    (void)send_control(*link, link->goodbye, kind, nullptr);  // a failure marks the link dead
    link->is_told = true;
  }
}

// As far as the provider takes it soon and there is memory for it; the destructor does the rest.
void OfiTransport::tell_peers() noexcept {
  try {
    take_leave();
    const Deadline deadline = Deadline::after(kTellTime);
    const auto is_due = [](const auto& link) { return is_telling(*link); };
    for (int attempt = 1; std::ranges::any_of(links_, is_due); ++attempt) {
      if (attempt > kTellAttempts && deadline.passed()) break;
      (void)advance();
      wait(std::chrono::milliseconds(1));
    }
  } catch (const std::bad_alloc&) {  // nor can it be logged
  }
}

void OfiTransport::shut_down() {
  take_leave();
  const auto any = [this](bool (*holds)(const Link&)) {
    return std::ranges::any_of(links_, [holds](const auto& link) { return holds(*link); });
  };
  const Deadline delivery = Deadline::after(kDeliveryTime);
  auto quiet_since = Clock::now();  // since then no data has been with the provider
  while ((any(is_talking) || any(awaits_acknowledgement)) && !delivery.passed()) {
    (void)advance();
    const auto now = Clock::now();
    if (any(is_draining)) quiet_since = now;
    if (!any(awaits_acknowledgement) && now - quiet_since >= kGoodbyeTime) break;
    if (rails_->is_shut() && now - quiet_since >= kStoppedTime) break;
    wait(kSlice);
  }
  if (any(is_draining)) log(LogLevel::Warn, "ofi: rank %d closed its transport before all data was sent", config_.rank);
}

Status OfiTransport::on_goodbye(Link& link, uint64_t sent) {
  link.goodbye_count = sent;
  finish_stranded(link);
  for (const auto& channel : link.channels) channel->schedule();
  return acknowledge_goodbye(link);
}

// The peer waits for it only if it has not received acknowledgements of all fragments.
Status OfiTransport::acknowledge_goodbye(Link& link) {
  if (!link.has_left()) return Status::ok();
  for (const auto& channel : link.channels) channel->schedule();  // what is missing now can never arrive
  const bool is_complete = link.arrived >= *link.goodbye_count;
  if (!is_complete || link.announced >= link.arrived || link.acknowledge.is_busy || link.is_dead) return Status::ok();
  return send_control(link, link.acknowledge, Kind::Acknowledge, nullptr);
}

// Nothing more is sent to this peer.
void OfiTransport::mark_dead(Link& link) {
  link.is_dead = true;
  drop_stranded(link);
  for (WriteOperation& operation : link.writes) link.unfinished -= operation.is_busy ? 1 : 0;
  rails_->drop(link);
  for (const WriteOperation& operation : link.writes) link.unfinished += operation.is_busy ? 1 : 0;
  for (SendOperation* operation : std::exchange(link.outbox, {})) {
    operation->is_busy = false;
    --link.unfinished;
  }
}

}  // namespace ccom::ofi
