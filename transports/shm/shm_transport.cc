// SPDX-License-Identifier: Apache-2.0
//
// Posting, progress, sleeping and stopping; connect.cc has the connection phase.
#include "transports/shm/shm_transport.h"

#include <sys/mman.h>

#include <algorithm>
#include <string>

#include "base/assert.h"
#include "transports/shm/doorbell.h"

namespace ccom::shm {

Status ShmChannel::post_send(const Send& send) { return transport_.post(*this, send); }
Status ShmChannel::post_receive(const Receive& receive) { return transport_.post(*this, receive); }

Status ShmTransport::post(ShmChannel& channel, const Send& send) {
  if (!failure_.is_ok()) return failure_;
  if (!channel.has_ring) CCOM_TRY(take_ring(channel));
  if (pacer_ == nullptr) return start(channel, {send, 0});
  const std::optional<Flight> flight = pacer_->post(&channel, channel.peer.local_rank, send);
  return flight ? start(channel, {send, flight->tail_ns}) : Status::ok();
}

Status ShmTransport::start(ShmChannel& channel, const PostedSend& posted) {
  if (channel.sends.empty()) {
    const uint64_t before = channel.outgoing.head();
    const Progress progress = channel.outgoing.advance(posted.send, posted.due_ns);
    if (channel.outgoing.head() != before) schedule_notification(channel);
    if (progress == Progress::Broken) return broken(channel);
    if (progress == Progress::Done) {
      sent(posted);
      return Status::ok();
    }
    sending_.push_back(&channel);
  }
  channel.sends.push(posted);
  return Status::ok();
}

Status ShmTransport::post(ShmChannel& channel, const Receive& receive) {
  if (!failure_.is_ok()) return failure_;
  CCOM_ASSERT(receive.size_bytes == 0 || (receive.target == nullptr) != (receive.sink == nullptr));
  if (channel.receives.empty()) receiving_.push_back(&channel);
  channel.receives.push(receive);
  return Status::ok();
}

// Also maps the memory, so that the first lap of the ring has no page faults; not possible on older kernels.
Status ShmTransport::take_ring(ShmChannel& channel) {
  Status status = segment_.reserve(channel.ring_offset_bytes, layout_.ring_bytes);
  if (!status.is_ok()) {
    failure_ = std::move(status).in("shm: ring to rank " + std::to_string(channel.peer.rank));
    return failure_;
  }
#ifdef MADV_POPULATE_WRITE
  ::madvise(channel.ring.data, layout_.ring_bytes, MADV_POPULATE_WRITE);
#endif
  channel.has_ring = true;
  ++rings_taken_;
  return Status::ok();
}

ShmTransport::~ShmTransport() { leave(); }

// Sleepers would not check for the missing part.
void ShmTransport::leave() {
  if (is_connected_) {
    my_lines().left.store(1, std::memory_order_release);
    for (const auto& channel : channels_) {
      if (channel != nullptr) schedule_notification(*channel);
    }
  }
  notify_all();
}

Status ShmTransport::progress(Events& events) {
  if (!failure_.is_ok()) return failure_;
  if (pacer_ != nullptr) CCOM_TRY(advance_paced());
  for (size_t i = receiving_.size(); i-- > 0;) {
    ShmChannel& channel = *receiving_[i];
    CCOM_TRY(move_incoming(channel, events));
    if (!failure_.is_ok()) break;  // a mismatch
    if (!channel.receives.empty()) continue;
    receiving_[i] = receiving_.back();
    receiving_.pop_back();
  }
  for (size_t i = sending_.size(); i-- > 0 && failure_.is_ok();) {
    ShmChannel& channel = *sending_[i];
    CCOM_TRY(move_outgoing(channel));
    if (!channel.sends.empty()) continue;
    sending_[i] = sending_.back();
    sending_.pop_back();
  }
  if (!to_notify_.empty()) notify_all();
  if (!completed_.empty()) {
    events.completed.insert(events.completed.end(), completed_.begin(), completed_.end());
    completed_.clear();
  }
  return Status::ok();
}

Status ShmTransport::move_incoming(ShmChannel& channel, Events& events) {
  Progress progress = Progress::Done;
  while (progress == Progress::Done && !channel.receives.empty() && !channel.is_held) {
    const Receive& receive = channel.receives.front();
    progress = channel.incoming.advance(receive);
    if (progress == Progress::Done && pacer_ != nullptr) {
      channel.is_held = true;
      channel.is_reduced = false;
      channel.due_ns = channel.incoming.due_ns();
    } else if (progress == Progress::Done) {
      completed_.push_back(receive.token);
      channel.receives.pop();
    }
  }
  if (progress == Progress::Broken) return broken(channel);
  if (progress == Progress::Mismatch) {
    const Receive& receive = channel.receives.front();
    const Frame& frame = channel.incoming.frame();
    events.mismatch =
        Mismatch{channel.peer.rank, receive.expected, frame.envelope, receive.size_bytes, frame.payload_bytes};
    failure_ = error(Code::Mismatch, "shm: rank %d sent a different message than expected", channel.peer.rank)
                   .with_peers({channel.peer.rank});
  }
  if (channel.incoming.needs_notification()) {
    channel.incoming.notified();
    schedule_notification(channel);
  }
  return progress == Progress::Waiting && has_left(channel) ? end_receives(channel, events) : Status::ok();
}

// Data that the peer wrote before it left is visible to whoever has seen that it left.
bool ShmTransport::has_left(const ShmChannel& channel) {
  return channel.peer.lines->left.load(std::memory_order_acquire) != 0 && !channel.incoming.has_bytes();
}

Status ShmTransport::end_receives(ShmChannel& channel, Events& events) {
  if (channel.incoming.has_begun() || !channel.receives.front().may_end) return lost(channel, "receive from");
  for (; !channel.receives.empty(); channel.receives.pop()) events.ended.push_back(channel.receives.front().token);
  return Status::ok();
}

Status ShmTransport::move_outgoing(ShmChannel& channel) {
  const uint64_t before = channel.outgoing.head();
  Progress progress = Progress::Done;
  while (progress == Progress::Done && !channel.sends.empty()) {
    const PostedSend& posted = channel.sends.front();
    progress = channel.outgoing.advance(posted.send, posted.due_ns);
    if (progress == Progress::Done) {
      sent(posted);
      channel.sends.pop();
    }
  }
  if (channel.outgoing.head() != before) schedule_notification(channel);
  if (progress == Progress::Waiting && channel.peer.lines->left.load(std::memory_order_acquire) != 0)
    return lost(channel, "send to");
  return progress == Progress::Broken ? broken(channel) : Status::ok();
}

void ShmTransport::sent(const PostedSend& posted) {
  if (pacer_ == nullptr) {
    completed_.push_back(posted.send.token);
  } else {
    held_.push_back(posted);
  }
}

Status ShmTransport::lost(const ShmChannel& channel, const char* what) {
  failure_ = error(Code::RemoteError, "shm: cannot %s rank %d, which has left", what, channel.peer.rank)
                 .with_peers({channel.peer.rank});
  return failure_;
}

Status ShmTransport::broken(const ShmChannel& channel) {
  failure_ = error(Code::TransportError, "shm: rank %d wrote an invalid counter to shared memory", channel.peer.rank)
                 .with_peers({channel.peer.rank});
  return failure_;
}

void ShmTransport::schedule_notification(ShmChannel& channel) {
  if (channel.peer.is_scheduled) return;
  channel.peer.is_scheduled = true;
  to_notify_.push_back(&channel.peer);
}

void ShmTransport::notify_all() {
  if (to_notify_.empty()) return;
  full_fence();
  for (LocalPeer* local_peer : to_notify_) {
    local_peer->is_scheduled = false;
    if (local_peer->lines->sleeping.load(std::memory_order_relaxed) != 0) ring(*local_peer->lines);
  }
  to_notify_.clear();
}

bool ShmTransport::has_work() const {
  return !completed_.empty() || !failure_.is_ok() || std::ranges::any_of(receiving_, [](const ShmChannel* channel) {
    if (channel->is_held) return false;
    return channel->incoming.has_bytes() || has_left(*channel);
  }) || std::ranges::any_of(sending_, [](const ShmChannel* channel) {
    return channel->outgoing.has_room(channel->sends.front().send);
  });
}

// Before sleeping, a rank also sends the notifications that it has deferred to save fences.
void ShmTransport::wait(std::chrono::nanoseconds at_most) {
  for (const auto& channel : channels_) {
    if (channel == nullptr || !channel->incoming.has_unnotified()) continue;
    channel->incoming.notified();
    schedule_notification(*channel);
  }
  notify_all();
  if (at_most.count() <= 0) return;
  Nap sleep_slice(my_lines());
  if (!is_woken_.load() && !has_work()) sleep_slice.sleep(pacer_ == nullptr ? at_most : std::min(at_most, until_due()));
  is_woken_.store(false);
}

void ShmTransport::wake() {
  is_woken_.store(true);
  ring(my_lines());
}

// Peers may still read what is in the rings; everything else is left as it is.
void ShmTransport::stop() {
  leave();
  if (failure_.is_ok()) failure_ = error(Code::Aborted, "shm: the transport was stopped");
  for (const auto& channel : channels_) {
    if (channel == nullptr) continue;
    channel->sends.clear();
    channel->receives.clear();
    channel->is_held = false;
  }
  held_.clear();
  if (pacer_ != nullptr) pacer_->clear();
  sending_.clear();
  receiving_.clear();
  completed_.clear();
}

uint64_t ShmTransport::memory_bytes() const { return rings_taken_ * layout_.ring_bytes; }

}  // namespace ccom::shm
