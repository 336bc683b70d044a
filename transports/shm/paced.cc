// SPDX-License-Identifier: Apache-2.0
//
// Only for transports with a pacer: sends messages when they have got to their last wire, and holds received ones until
// their time of arrival.
#include <algorithm>

#include "transports/shm/shm_transport.h"

namespace ccom::shm {

// UINT64_MAX: nothing is held.
uint64_t ShmTransport::earliest_due_ns() const {
  uint64_t earliest = UINT64_MAX;
  for (const ShmChannel* const channel : receiving_) {
    if (channel->is_held) earliest = std::min(earliest, channel->due_ns);
  }
  for (const PostedSend& posted : held_) earliest = std::min(earliest, posted.due_ns);
  return earliest;
}

// Heads get to wires, up to the time at which something is due that the program may react to.
Status ShmTransport::advance_paced() {
  const uint64_t now = pacer_->now();
  uint64_t due_ns = earliest_due_ns();
  while (pacer_->next_head_ns() <= std::min(now, due_ns)) {
    const std::optional<Flight> flight = pacer_->advance();
    if (!flight) continue;
    CCOM_TRY(start(*flight->channel, {flight->send, flight->tail_ns}));
    due_ns = earliest_due_ns();
  }
  if (due_ns <= now) report_due(due_ns);
  return Status::ok();
}

void ShmTransport::report_due(uint64_t time_ns) {
  if (reduce_due(time_ns)) return;  // perhaps the earliest is another one now
  pacer_->notify(time_ns);
  for (ShmChannel* const channel : receiving_) {
    if (!channel->is_held || channel->due_ns != time_ns) continue;
    completed_.push_back(channel->receives.front().token);
    channel->receives.pop();
    channel->is_held = false;
  }
  std::erase_if(held_, [this, time_ns](const PostedSend& posted) {
    if (posted.due_ns == time_ns) completed_.push_back(posted.send.token);
    return posted.due_ns == time_ns;
  });
}

// What arrives then to be reduced is due when it has been. False: there is nothing.
bool ShmTransport::reduce_due(uint64_t time_ns) {
  bool found = false;
  for (ShmChannel* const channel : receiving_) {
    if (!channel->is_held || channel->is_reduced || channel->due_ns != time_ns) continue;
    const Receive& receive = channel->receives.front();
    if (!pacer_->reduces() || receive.sink == nullptr || receive.size_bytes == 0) continue;
    channel->due_ns = pacer_->reduce(time_ns, receive.size_bytes);
    channel->is_reduced = true;
    found = true;
  }
  return found;
}

std::chrono::nanoseconds ShmTransport::until_due() const {
  const uint64_t time_ns = std::min(earliest_due_ns(), pacer_->next_head_ns());
  const uint64_t now = pacer_->now();
  constexpr uint64_t kMaxNs = 1'000'000'000;  // maximum sleep; a peer's stamp may have any value
  return std::chrono::nanoseconds(time_ns > now ? static_cast<int64_t>(std::min(time_ns - now, kMaxNs)) : 0);
}

}  // namespace ccom::shm
