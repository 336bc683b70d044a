// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/incoming.h"

#include <algorithm>
#include <cstring>

namespace ccom::shm {

Progress Incoming::advance(const Receive& receive) {
  if (!is_framed_) {
    const Progress progress = take_frame(receive);
    if (progress != Progress::Done) return progress;
  }
  return stream(receive);
}

// The sender adds at most what fits, and never removes anything.
bool Incoming::refresh() {
  const uint64_t head = ring_.lines->head.load(std::memory_order_acquire);
  if (head - tail_ > ring_.ring_bytes || head - tail_ < head_ - tail_) return false;
  head_ = head;
  return true;
}

Progress Incoming::take_frame(const Receive& receive) {
  if (available_bytes() < kGrainBytes) {
    if (!refresh()) return Progress::Broken;
    if (available_bytes() < kGrainBytes) return Progress::Waiting;
  }
  std::memcpy(&frame_, at(tail_), sizeof(frame_));
  if (frame_.envelope != receive.expected || frame_.payload_bytes != receive.size_bytes) return Progress::Mismatch;
  if (frame_bytes_ > sizeof(frame_)) std::memcpy(&due_ns_, at(tail_) + sizeof(frame_), sizeof(due_ns_));
  tail_ += receive.size_bytes <= kSmallBytes ? frame_bytes_ : kGrainBytes;
  received_bytes_ = 0;
  is_framed_ = true;
  return Progress::Done;
}

// At most one full ring per call, so that one channel cannot starve the others.
Progress Incoming::stream(const Receive& receive) {
  for (size_t moved = 0; received_bytes_ < receive.size_bytes;) {
    const size_t rest = receive.size_bytes - received_bytes_;
    const size_t before_wrap = ring_.ring_bytes - static_cast<size_t>(tail_ & (ring_.ring_bytes - 1));
    size_t piece = std::min({available_bytes(), before_wrap, kPieceBytes, rest});
    if (piece < rest) piece &= ~size_t{15};
    if (piece == 0) {
      const uint64_t before = head_;
      if (!refresh()) return Progress::Broken;
      if (head_ != before) continue;
    }
    if (piece == 0 || moved >= ring_.ring_bytes) {
      publish();
      return Progress::Waiting;
    }
    deliver(receive, piece);
    moved += piece;
    if (received_bytes_ < receive.size_bytes) publish();
  }
  tail_ = round_to_grain(tail_);
  if (available_bytes() > ring_.ring_bytes) return Progress::Broken;  // beyond head_: padding is published with the end
  publish();
  is_framed_ = false;
  return Progress::Done;
}

void Incoming::deliver(const Receive& receive, size_t piece) {
  if (receive.sink != nullptr) {
    receive.sink->consume(received_bytes_, ConstBytes(at(tail_), piece));
  } else {
    std::memcpy(receive.target + received_bytes_, at(tail_), piece);
  }
  received_bytes_ += piece;
  tail_ += piece;
}

}  // namespace ccom::shm
