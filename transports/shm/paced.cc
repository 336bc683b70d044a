// SPDX-License-Identifier: Apache-2.0
//
// What only a transport with a pacer does: hold what has come until its time has.
#include <algorithm>

#include "transports/shm/shm_transport.h"

namespace ccom::shm {

// UINT64_MAX: nothing is held.
uint64_t ShmTransport::earliest_due_ns() const {
  uint64_t earliest = UINT64_MAX;
  for (const ShmChannel* const channel : receiving_) {
    if (channel->is_held) earliest = std::min(earliest, channel->incoming.due_ns());
  }
  for (const PostedSend& posted : held_) earliest = std::min(earliest, posted.due_ns);
  return earliest;
}

void ShmTransport::report_due() {
  const uint64_t moment = earliest_due_ns();
  if (moment == UINT64_MAX || moment > pacer_->now()) return;
  pacer_->tell(moment);
  for (ShmChannel* const channel : receiving_) {
    if (!channel->is_held || channel->incoming.due_ns() != moment) continue;
    completed_.push_back(channel->receives.front().token);
    channel->receives.pop();
    channel->is_held = false;
  }
  std::erase_if(held_, [this, moment](const PostedSend& posted) {
    if (posted.due_ns == moment) completed_.push_back(posted.send.token);
    return posted.due_ns == moment;
  });
}

std::chrono::nanoseconds ShmTransport::until_due() const {
  const uint64_t moment = earliest_due_ns();
  const uint64_t now = pacer_->now();
  constexpr uint64_t kMostNs = 1'000'000'000;  // nobody sleeps longer; what a peer has stamped may be anything
  return std::chrono::nanoseconds(moment > now ? static_cast<int64_t>(std::min(moment - now, kMostNs)) : 0);
}

}  // namespace ccom::shm
