// SPDX-License-Identifier: Apache-2.0
//
// The receiver's end of one ring. Believes nothing that it reads there: counters must be possible, the message must be
// the one that is expected.
#pragma once

#include "transports/shm/frame.h"
#include "transports/shm/layout.h"

namespace ccom::shm {

// Invariants: tail_ <= head_ <= tail_ + ring_bytes; tail_ is published between calls; head_ is what the sender had put
// in when we last looked.
class Incoming {
 public:
  explicit Incoming(const RingView& ring, bool stamped = false) : ring_(ring), frame_bytes_(frame_bytes(stamped)) {}

  // Delivers what is there of the message that is next in line. To be called with the same receive until it is done.
  // After a Mismatch, frame() is what came instead, and nothing was delivered.
  Progress advance(const Receive& receive);
  // True if advance() would find bytes; looks at the sender's counter.
  bool has_bytes() const { return ring_.lines->head.load(std::memory_order_acquire) != tail_; }
  const Frame& frame() const { return frame_; }
  // The stamp of the message that came last, if frames have one.
  uint64_t due_ns() const { return due_ns_; }
  // Within a message.
  bool has_begun() const { return is_framed_; }

  // The sender can only be asleep for want of room if the ring was more than half full since it was last told what is
  // free: it waits for no more than half a ring. So it need not hear of every message that we take out.
  bool has_untold() const { return told_tail_ != tail_; }
  bool owes_news() const { return has_untold() && head_ - told_tail_ > ring_.ring_bytes / 2; }
  void told() { told_tail_ = tail_; }

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
  uint64_t told_tail_ = 0;
  bool is_framed_ = false;  // the current message's frame was taken, and was right
  size_t received_bytes_ = 0;
  Frame frame_;
  uint64_t due_ns_ = 0;
};

}  // namespace ccom::shm
