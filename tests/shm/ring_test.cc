// SPDX-License-Identifier: Apache-2.0
//
// One ring, both of its ends in one thread, and its counters in the hands of the test: what is promised to a peer that
// behaves, and that one which does not gets nowhere.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "transports/shm/incoming.h"
#include "transports/shm/layout.h"
#include "transports/shm/outgoing.h"

namespace ccom::shm {
namespace {

constexpr size_t kRingBytes = 4096;

Send send_of(ConstBytes payload) { return {Envelope{{1, 2, 3, 4, 5}}, payload, 1}; }
Receive receive_into(Bytes target) { return {Envelope{{1, 2, 3, 4, 5}}, target.size(), target.data(), nullptr, 1}; }

class Ring : public testing::Test {
 protected:
  // The data is of its own, so that AddressSanitizer sees an access outside.
  Ring() : data_(kRingBytes), view_{&lines_, data_.data(), kRingBytes}, outgoing_(view_), incoming_(view_) {}

  RingLines lines_{};
  std::vector<std::byte> data_;
  RingView view_;
  Outgoing outgoing_;
  Incoming incoming_;
};

std::vector<std::byte> numbered(size_t size_bytes, size_t first) {
  std::vector<std::byte> bytes(size_bytes);
  for (size_t i = 0; i < size_bytes; ++i) bytes[i] = static_cast<std::byte>((first + i) * 7);
  return bytes;
}

void carry_every_size(const RingView& view, bool is_stamped) {
  Outgoing outgoing(view, is_stamped);
  Incoming incoming(view, is_stamped);
  for (size_t size_bytes = 0; size_bytes < 9000; size_bytes += 1 + size_bytes / 40) {
    const auto sent = numbered(size_bytes, size_bytes);
    std::vector<std::byte> received(size_bytes);
    Progress out = Progress::Waiting, in = Progress::Waiting;
    for (int turn = 0; turn < 20 && in != Progress::Done; ++turn) {
      if (out != Progress::Done) out = outgoing.advance(send_of(sent), is_stamped ? size_bytes + 5 : 0);
      in = incoming.advance(receive_into(received));
    }
    ASSERT_EQ(out, Progress::Done);
    ASSERT_EQ(in, Progress::Done) << size_bytes;
    ASSERT_EQ(received, sent) << size_bytes;
    if (is_stamped) {
      ASSERT_EQ(incoming.due_ns(), size_bytes + 5);
    }
  }
}

TEST_F(Ring, CarriesEverySizeAcrossEveryWrap) { carry_every_size(view_, false); }
TEST_F(Ring, CarriesAStampWithEverySize) { carry_every_size(view_, true); }

TEST_F(Ring, OnlyWholeSmallMessagesArePublished) {
  const auto sent = numbered(1500, 0);
  int published = 0;
  while (outgoing_.advance(send_of(sent)) == Progress::Done) ++published;
  EXPECT_EQ(published, 2);  // a third would fit in part only
  std::vector<std::byte> received(1500);
  EXPECT_EQ(incoming_.advance(receive_into(received)), Progress::Done);
  EXPECT_EQ(incoming_.advance(receive_into(received)), Progress::Done);
  EXPECT_EQ(incoming_.advance(receive_into(received)), Progress::Waiting);
}

TEST_F(Ring, TheReceiverRefusesAHeadBeyondTheRing) {
  std::vector<std::byte> received(1000);
  lines_.head.store(kRingBytes + 64);
  EXPECT_EQ(incoming_.advance(receive_into(received)), Progress::Broken);
}

TEST_F(Ring, TheReceiverRefusesAHeadThatGoesBack) {
  const auto sent = numbered(8, 0);
  std::vector<std::byte> received(8);
  ASSERT_EQ(outgoing_.advance(send_of(sent)), Progress::Done);
  ASSERT_EQ(incoming_.advance(receive_into(received)), Progress::Done);
  lines_.head.store(0);
  EXPECT_EQ(incoming_.advance(receive_into(received)), Progress::Broken);
}

TEST_F(Ring, TheReceiverRefusesAMessageWithoutItsPadding) {
  const auto sent = numbered(20, 0);
  std::vector<std::byte> received(20);
  ASSERT_EQ(outgoing_.advance(send_of(sent)), Progress::Done);
  ASSERT_EQ(lines_.head.load(), 128u);
  lines_.head.store(80);  // frame and payload end at 68
  EXPECT_EQ(incoming_.advance(receive_into(received)), Progress::Broken);
}

TEST_F(Ring, TheReceiverNeverReadsMoreThanItExpectsWhateverTheFrameSays) {
  Frame frame{Envelope{{1, 2, 3, 4, 5}}, uint64_t{1} << 60};
  std::memcpy(data_.data(), &frame, sizeof(frame));
  lines_.head.store(kRingBytes);
  std::vector<std::byte> received(100, std::byte{0xA5});
  EXPECT_EQ(incoming_.advance(receive_into(received)), Progress::Mismatch);
  EXPECT_EQ(incoming_.frame().payload_bytes, uint64_t{1} << 60);
  EXPECT_EQ(received, std::vector<std::byte>(100, std::byte{0xA5}));
}

TEST_F(Ring, TheSenderRefusesATailAheadOfItsHead) {
  const auto sent = numbered(3000, 0);
  ASSERT_EQ(outgoing_.advance(send_of(sent)), Progress::Done);
  lines_.tail.store(lines_.head.load() + kRingBytes);
  EXPECT_EQ(outgoing_.advance(send_of(sent)), Progress::Broken);
}

TEST_F(Ring, TheSenderRefusesATailThatGoesBack) {
  const auto sent = numbered(3000, 0);
  std::vector<std::byte> received(3000);
  ASSERT_EQ(outgoing_.advance(send_of(sent)), Progress::Done);
  ASSERT_EQ(incoming_.advance(receive_into(received)), Progress::Done);
  ASSERT_EQ(outgoing_.advance(send_of(sent)), Progress::Done);
  lines_.tail.store(0);
  EXPECT_EQ(outgoing_.advance(send_of(sent)), Progress::Broken);
}

TEST_F(Ring, AnUnevenTailOnlyCostsRoom) {
  const auto sent = numbered(6000, 0);
  ASSERT_EQ(outgoing_.advance(send_of(sent)), Progress::Waiting);
  lines_.tail.store(100);  // no receiver of ours would stop there
  ASSERT_EQ(outgoing_.advance(send_of(sent)), Progress::Waiting);
  EXPECT_LE(lines_.head.load() - 100, kRingBytes);
}

TEST_F(Ring, NewsIsOwedOnceTheSenderMayBeShortOfRoom) {
  const auto sent = numbered(1900, 0);
  std::vector<std::byte> received(1900);
  ASSERT_EQ(outgoing_.advance(send_of(sent)), Progress::Done);
  ASSERT_EQ(incoming_.advance(receive_into(received)), Progress::Done);
  EXPECT_FALSE(incoming_.needs_notification()) << "the sender cannot have been waiting";
  EXPECT_TRUE(incoming_.has_unnotified());
  ASSERT_EQ(outgoing_.advance(send_of(sent)), Progress::Done);
  ASSERT_EQ(incoming_.advance(receive_into(received)), Progress::Done);
  EXPECT_TRUE(incoming_.needs_notification());
  incoming_.notified();
  EXPECT_FALSE(incoming_.needs_notification());
  EXPECT_FALSE(incoming_.has_unnotified());
}

TEST(Layout, RingsAndLinesDoNotOverlap) {
  for (int ranks = 1; ranks <= 6; ++ranks) {
    for (int channels = 1; channels <= 4; ++channels) {
      const Layout layout{ranks, channels, kRingBytes};
      std::vector<bool> used(layout.rings(), false);
      for (int from = 0; from < ranks; ++from) {
        for (int to = 0; to < ranks; ++to) {
          for (int channel = 0; channel < channels && from != to; ++channel) {
            const size_t index = layout.ring_index(from, to, channel);
            ASSERT_LT(index, used.size());
            ASSERT_FALSE(used[index]);
            used[index] = true;
          }
        }
      }
      const RingView last = layout.ring(nullptr, used.size());  // one past the last
      EXPECT_LE(reinterpret_cast<uintptr_t>(last.lines), layout.header_bytes());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(last.data), layout.region_bytes());
    }
  }
}

}  // namespace
}  // namespace ccom::shm
