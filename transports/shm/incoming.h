// SPDX-License-Identifier: Apache-2.0
//
// The receiving end of one ring. Validates everything that it reads there: counters must be plausible and the message
// must be the expected one.
#pragma once

#include "transports/shm/frame.h"
#include "transports/shm/layout.h"

namespace ccom::shm {

// Invariants: tail_ <= head_ <= tail_ + ring_bytes; tail_ is published between calls; head_ is the sender's counter as
// last read.
class Incoming {
 public:
  explicit Incoming(const RingView& ring, bool stamped = false) : ring_(ring), frame_bytes_(frame_bytes(stamped)) {}

  // Delivers the available part of the current message. Call with the same receive until it is done. After a Mismatch,
  // frame() is what arrived instead, and nothing was delivered.
  Progress advance(const Receive& receive);
  // Whether advance() would find data; reads the sender's counter.
  bool has_bytes() const { return ring_.lines->head.load(std::memory_order_acquire) != tail_; }
  const Frame& frame() const { return frame_; }
  // The stamp of the last message, if frames have one.
  uint64_t due_ns() const { return due_ns_; }
  // In the middle of a message.
  bool has_begun() const { return is_framed_; }

  // A sender waits for at most half a ring of space, so it can be asleep only if the ring was more than half full when
  // it was last notified. Other reads need no notification.
  bool has_unnotified() const { return notified_tail_ != tail_; }
  bool needs_notification() const { return has_unnotified() && head_ - notified_tail_ > ring_.ring_bytes / 2; }
  void notified() { notified_tail_ = tail_; }

 private:
  size_t available_bytes() const { return static_cast<size_t>(head_ - tail_); }
  bool refresh();
  Progress take_frame(const Receive& receive);
  Progress stream(const Receive& receive);
  void deliver(const Receive& receive, size_t piece);
  void publish() { ring_.lines->tail.store(tail_, std::memory_order_release); }
  const std::byte* at(uint64_t position) const { return ring_.data + (position & (ring_.ring_bytes - 1)); }

  const RingView ring_;
  const size_t frame_bytes_;
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
  uint64_t notified_tail_ = 0;
  bool is_framed_ = false;  // the current message's frame was read and matched
  size_t received_bytes_ = 0;
  Frame frame_;
  uint64_t due_ns_ = 0;
};

}  // namespace ccom::shm
