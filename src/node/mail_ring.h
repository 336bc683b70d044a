// SPDX-License-Identifier: Apache-2.0
//
// Where the long mails of one rank lie in a ring of memory: one behind the other, each in one piece, until everybody
// has read them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "node/layout.h"
#include "node/lines.h"

namespace ccom {

// Mails belong to numbered barriers, ascending (numbers wrap), fewer than kAheadBanks at a time. Belongs to one thread.
class MailRing {
 public:
  // At least four of the longest mails.
  explicit MailRing(size_t size_bytes) : size_(size_bytes) {}

  size_t size_bytes() const { return size_; }
  // Everybody has arrived at this barrier, and reads nothing of barriers before.
  void free_before(uint32_t number) {
    while (count_ > 0 && is_before(oldest().number, number)) {
      tail_ = oldest().end;
      first_ = (first_ + 1) % kAheadBanks;
      --count_;
    }
    if (count_ == 0) tail_ = head_;
  }
  bool has_room(size_t size_bytes) const { return place_of(size_bytes) + rounded(size_bytes) - tail_ <= size_; }
  // The barrier at which everybody has to arrive so that this mail fits, and then half of the ring is free, but not a
  // later one than `last`, this rank's last barrier: others might wait for this rank there.
  uint32_t awaited_for(size_t size_bytes, uint32_t last) const {
    const uint64_t end = place_of(size_bytes) + rounded(size_bytes);
    uint32_t number = last;
    for (uint32_t i = 0; i < count_; ++i) {
      const Mail& mail = mails_[(first_ + i) % kAheadBanks];
      if (!is_before(mail.number, last)) break;
      number = mail.number + 1;
      if (end - mail.end <= size_ && mail.end - tail_ >= size_ / 2) break;
    }
    return number;
  }
  // Its offset. There must be room for it.
  size_t take(size_t size_bytes, uint32_t number) {
    const uint64_t place = place_of(size_bytes);
    head_ = place + rounded(size_bytes);
    CCOM_ASSERT(count_ < kAheadBanks && head_ - tail_ <= size_);
    mails_[(first_ + count_++) % kAheadBanks] = {head_, number};
    return place % size_;
  }

 private:
  struct Mail {
    uint64_t end;
    uint32_t number;
  };
  static uint64_t rounded(size_t size_bytes) { return (size_bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }
  // The rest of the ring is left free where it is too short.
  uint64_t place_of(size_t size_bytes) const {
    const uint64_t rest = size_ - head_ % size_;
    return rest < rounded(size_bytes) ? head_ + rest : head_;
  }
  const Mail& oldest() const { return mails_[first_]; }

  const uint64_t size_;           // bytes, whole lines
  uint64_t head_ = 0, tail_ = 0;  // of all bytes ever: where the next mail begins, and the oldest that somebody reads
  std::array<Mail, kAheadBanks> mails_{};
  uint32_t first_ = 0, count_ = 0;
};

}  // namespace ccom
