// SPDX-License-Identifier: Apache-2.0
#include "node/mail_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace ccom {
namespace {

struct Mail {
  size_t begin, size;
  uint32_t number;
};

bool overlaps(const Mail& a, const Mail& b) { return a.begin < b.begin + b.size && b.begin < a.begin + a.size; }

// A rank that writes long mails in some of its calls, and others that follow at their own pace. Numbers wrap.
void write_mails(size_t ring_bytes, size_t longest, uint32_t seed) {
  MailRing ring(ring_bytes);
  std::mt19937 random(seed);
  std::deque<Mail> unread;
  uint32_t number = UINT32_MAX - 500, met = number;
  size_t waits = 0, written = 0;
  const auto read_before = [&](uint32_t all_have_reached) {
    met = all_have_reached;
    ring.free_before(met);
    while (!unread.empty() && is_before(unread.front().number, met)) unread.pop_front();
  };
  for (int call = 0; call < 20000; ++call) {
    if (number - met >= kAheadBanks - 1) read_before(number - random() % 8);  // as the lines demand
    if (random() % 4 != 0) {
      const size_t size = 1 + random() % longest;
      if (!ring.has_room(size)) {
        ++waits;
        const uint32_t awaited = ring.awaited_for(size, number);
        ASSERT_FALSE(is_before(number, awaited)) << "others may wait for this rank there";
        read_before(awaited);
      }
      ASSERT_TRUE(ring.has_room(size));
      const Mail mail{ring.take(size, number + 1), size, number + 1};
      ASSERT_LE(mail.begin + size, ring_bytes);
      ASSERT_EQ(mail.begin % kLineBytes, 0U);
      for (const Mail& other : unread) ASSERT_FALSE(overlaps(mail, other)) << "call " << call;
      unread.push_back(mail);
      ++written;
    }
    ++number;
  }
  EXPECT_GT(waits, 0U);
  EXPECT_LT(waits, written / 2) << "half of the ring is free after a wait";
}

TEST(MailRing, MailsLieInOnePieceAndWhereNobodyReads) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    write_mails(size_t{8} * 65536, 65536, seed);
    write_mails(size_t{8} * 65536, 20000, seed);
    write_mails(size_t{4} * 8192, 8192, seed);
    write_mails(size_t{8} * 2048, 700, seed);
  }
}

}  // namespace
}  // namespace ccom
