// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/outgoing.h"

#include <algorithm>
#include <cstring>

namespace ccom::shm {

Progress Outgoing::advance(const Send& send, uint64_t due_ns) {
  const size_t payload_bytes = send.payload.size();
  if (!is_framed_) {
    const size_t needed = needed_bytes(payload_bytes);
    if (free_bytes() < needed) {
      if (!refresh()) return Progress::Broken;
      if (free_bytes() < needed) return Progress::Waiting;
    }
    const Frame frame{send.envelope, payload_bytes};
    std::memcpy(at(head_), &frame, sizeof(frame));
    if (frame_bytes_ > sizeof(frame)) std::memcpy(at(head_) + sizeof(frame), &due_ns, sizeof(due_ns));
    if (payload_bytes <= kSmallBytes) {
      put_small(send);
      return Progress::Done;
    }
    is_framed_ = true;
    sent_bytes_ = 0;
    head_ += kGrainBytes;
  }
  return stream(send.payload);
}

size_t Outgoing::needed_bytes(size_t payload_bytes) const {
  return payload_bytes <= kSmallBytes ? round_to_grain(frame_bytes_ + payload_bytes) : kGrainBytes;
}

bool Outgoing::has_room(const Send& send) const {
  const uint64_t tail = ring_.lines->tail.load(std::memory_order_acquire);
  const size_t needed = is_framed_ ? kGrainBytes : needed_bytes(send.payload.size());
  return ring_.ring_bytes - static_cast<size_t>(head_ - tail) >= needed;
}

// The receiver frees only what is available, and never takes anything back.
bool Outgoing::refresh() {
  const uint64_t tail = ring_.lines->tail.load(std::memory_order_acquire);
  if (tail - tail_ > head_ - tail_) return false;
  tail_ = tail;
  return true;
}

void Outgoing::put_small(const Send& send) {
  const size_t size = send.payload.size();
  if (size > 0) {
    const uint64_t start = head_ + frame_bytes_;
    const size_t before_wrap = std::min(size, ring_.ring_bytes - static_cast<size_t>(start & (ring_.ring_bytes - 1)));
    std::memcpy(at(start), send.payload.data(), before_wrap);
    if (before_wrap < size) std::memcpy(ring_.data, send.payload.data() + before_wrap, size - before_wrap);
  }
  head_ += round_to_grain(frame_bytes_ + size);
  publish();
}

// At most one full ring per call, so that one channel cannot starve the others.
Progress Outgoing::stream(ConstBytes payload) {
  for (size_t moved = 0; moved < ring_.ring_bytes;) {
    size_t room = free_bytes() & ~(kGrainBytes - 1);
    if (room == 0) {
      if (!refresh()) return Progress::Broken;
      room = free_bytes() & ~(kGrainBytes - 1);
      if (room == 0) break;
    }
    const size_t before_wrap = ring_.ring_bytes - static_cast<size_t>(head_ & (ring_.ring_bytes - 1));
    const size_t piece = std::min({room, before_wrap, kTileBytes, payload.size() - sent_bytes_});
    std::memcpy(at(head_), payload.data() + sent_bytes_, piece);
    sent_bytes_ += piece;
    moved += piece;
    head_ += round_to_grain(piece);
    publish();
    if (sent_bytes_ == payload.size()) {
      is_framed_ = false;
      return Progress::Done;
    }
  }
  publish();
  return Progress::Waiting;
}

}  // namespace ccom::shm
