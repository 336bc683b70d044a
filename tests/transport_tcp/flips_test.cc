// SPDX-License-Identifier: Apache-2.0
//
// One bit, or a burst of up to 32, is flipped in what a Sender has written, anywhere; a Receiver that gets it has an
// error that names both ranks and the kind of damage, never a wrong message and never nothing. The grid is smaller than
// in use, so that short messages have many fragments. 5,000 flips; CCOM_TEST_LONG=1: a million; CCOM_TEST_POINTS: that
// many.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <random>

#include "tests/harness/effort.h"
#include "tests/transport_tcp/ends.h"
#include "transports/tcp/receiver.h"
#include "transports/tcp/sender.h"

namespace ccom::tcp {
namespace {

constexpr size_t kGrid = 1024;
constexpr size_t kFlipsOfAStream = 50;
constexpr int kLines = 2;

// Some messages, and what a Sender makes of them, by line.
struct Recorded {
  std::vector<std::vector<std::byte>> messages;
  std::vector<Envelope> envelopes;
  std::vector<std::byte> streams[kLines];
  size_t bytes() const { return streams[0].size() + streams[1].size(); }
};

Recorded record(std::mt19937_64& random) {
  Recorded made;
  Ends ends(kLines);
  const Route route{.self = 1, .peer = 0, .channel = 0, .address = "here"};
  Rails rails(route, ends.lines, std::chrono::milliseconds(0));
  Sender sender(route, ends.lines, rails, kGrid, true);
  for (size_t count = 1 + random() % 3, i = 0; i < count; ++i) {
    made.messages.emplace_back(random() % 3 == 0 ? random() % 8000 : random() % 1500);
    for (std::byte& byte : made.messages.back()) byte = static_cast<std::byte>(random());
    made.envelopes.push_back({{random(), random(), i}});
  }
  for (size_t i = 0; i < made.messages.size(); ++i)
    EXPECT_TRUE(sender.post({made.envelopes[i], made.messages[i], i}).is_ok());
  std::vector<Token> completed;
  while (completed.size() < made.messages.size()) EXPECT_TRUE(sender.pump(false, completed).is_ok());
  for (int line = 0; line < kLines; ++line) {
    std::array<std::byte, 4096> piece;
    ssize_t got = 0;
    while ((got = ::recv(ends.far[static_cast<size_t>(line)], piece.data(), piece.size(), 0)) > 0)
      made.streams[line].insert(made.streams[line].end(), piece.begin(), piece.begin() + got);
  }
  return made;
}

// Flips what `pattern` has from a random bit of a line's stream on.
void damage(Recorded& recorded, std::mt19937_64& random) {
  size_t bit = random() % (recorded.bytes() * 8);
  const uint32_t pattern = random() % 2 == 0 ? 1 : static_cast<uint32_t>(random()) | 1;
  const bool is_second = bit >= recorded.streams[0].size() * 8;
  if (is_second) bit -= recorded.streams[0].size() * 8;
  std::vector<std::byte>& stream = recorded.streams[is_second ? 1 : 0];
  for (size_t i = 0; i < 32 && bit + i < stream.size() * 8; ++i) {
    if ((pattern >> i & 1) != 0) stream[(bit + i) / 8] ^= std::byte{1} << (bit + i) % 8;
  }
}

// What is wrong with what a Receiver makes of it; "" if it is the error that it must be, or, undamaged, no error.
std::string fault_of(const Recorded& recorded, const std::vector<std::vector<std::byte>>& sent, bool is_damaged) {
  Ends ends(kLines);
  static BufferPool pool(kMaxFragmentBytes);
  const Route route{.self = 0, .peer = 1, .channel = 0, .address = "10.0.0.1:7"};
  Rails rails(route, ends.lines, std::chrono::milliseconds(0));
  Receiver receiver(route, ends.lines, rails, kGrid, true, pool);
  std::vector<std::vector<std::byte>> targets;
  for (size_t i = 0; i < sent.size(); ++i) {
    targets.emplace_back(sent[i].size());
    receiver.post({recorded.envelopes[i], targets[i].size(), targets[i].data(), nullptr, i});
  }
  for (int line = 0; line < kLines; ++line) {
    const auto& stream = recorded.streams[line];
    const ssize_t written = ::send(ends.far[static_cast<size_t>(line)], stream.data(), stream.size(), MSG_NOSIGNAL);
    if (written != static_cast<ssize_t>(stream.size())) return "the test's sockets are too small";
  }
  Events events;
  Status status;
  for (int idle = 0; idle < 4 && status.is_ok() && !events.mismatch; ++idle) status = receiver.pump(false, events);
  for (const Token token : events.completed) {
    if (targets[token] != sent[token]) return "a wrong message";
  }
  if (events.mismatch) return "taken for another call";
  if (!is_damaged) return status.is_ok() && events.completed.size() == sent.size() ? "" : "fails undamaged";
  if (status.is_ok())
    return events.completed.size() == sent.size() ? "not found" : "not found; a receive waits for ever";
  const std::string& text = status.message();
  const bool says_what = text.find("corrupt header") != std::string::npos || text.find("checksum") != std::string::npos;
  const bool says_who = text.find("rank 0: receive from rank 1 at 10.0.0.1:7") != std::string::npos;
  const bool is_right = status.code() == Code::TransportError && status.peers() == std::vector<int>{1};
  return is_right && says_what && says_who ? "" : "another error: " + text;
}

TEST(Checksum, FindsEveryFlippedBitAndBurst) {
  const size_t wanted = count_from("CCOM_TEST_POINTS", 5'000, 1'000'000);
  const uint64_t first = test_seed();
  SCOPED_TRACE("CCOM_TEST_SEED=" + std::to_string(first));
  std::mt19937_64 seeds(first);
  size_t flips = 0, wrong = 0;
  while (flips < wanted && wrong < 20) {
    const uint64_t seed = seeds();
    std::mt19937_64 random(seed);
    const Recorded original = record(random);
    EXPECT_EQ(fault_of(original, original.messages, false), "") << "seed " << seed;
    for (size_t i = 0; i < kFlipsOfAStream; ++i, ++flips) {
      Recorded damaged = original;
      damage(damaged, random);
      const std::string fault = fault_of(damaged, original.messages, true);
      wrong += fault.empty() ? 0 : 1;
      EXPECT_EQ(fault, "") << "seed " << seed << ", flip " << i;
    }
  }
  std::printf("%zu flips, %zu wrong\n", flips, wrong);
}

}  // namespace
}  // namespace ccom::tcp
