// SPDX-License-Identifier: Apache-2.0
//
// The sending end of one ring.
#pragma once

#include "transports/shm/frame.h"
#include "transports/shm/layout.h"

namespace ccom::shm {

// Invariants: tail_ <= head_ <= tail_ + ring_bytes; head_ is published, and a multiple of 64, between calls; tail_ is
// the receiver's counter as last read.
class Outgoing {
 public:
  explicit Outgoing(const RingView& ring, bool stamped = false) : ring_(ring), frame_bytes_(frame_bytes(stamped)) {}

  // Copies as much of the current message as fits. Call with the same message until it is done. due_ns: its stamp, if
  // frames have one.
  Progress advance(const Send& send, uint64_t due_ns = 0);
  // Whether advance() would find space; reads the receiver's counter.
  bool has_room(const Send& send) const;
  // Total bytes written; after a change the receiver must be notified.
  uint64_t head() const { return head_; }

 private:
  size_t free_bytes() const { return ring_.ring_bytes - static_cast<size_t>(head_ - tail_); }
  size_t needed_bytes(size_t payload_bytes) const;
  bool refresh();
  void put_small(const Send& send);
  Progress stream(ConstBytes payload);
  void publish() { ring_.lines->head.store(head_, std::memory_order_release); }
  std::byte* at(uint64_t position) const { return ring_.data + (position & (ring_.ring_bytes - 1)); }

  const RingView ring_;
  const size_t frame_bytes_;
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
  bool is_framed_ = false;  // the current message's frame is written
  size_t sent_bytes_ = 0;   // of its payload
};

}  // namespace ccom::shm
