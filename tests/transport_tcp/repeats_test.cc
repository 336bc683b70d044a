// SPDX-License-Identifier: Apache-2.0
//
// A line dies at any place of a stream, and what it had not brought, or had, comes again on another line, behind
// whatever had been sent there: a Receiver with few receives posted gets each message whole, and each piece of it once.
// The grid is smaller than in use, so that short messages have many fragments.
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "tests/transport_tcp/ends.h"
#include "tests/transport_tcp/raw.h"
#include "transports/tcp/receiver.h"

namespace ccom::tcp {
namespace {

constexpr size_t kSmallGrid = 1024;
constexpr size_t kThreeLines = 3;
constexpr std::chrono::milliseconds kLimit{5};

struct Sent {
  std::vector<std::vector<std::byte>> messages;
  std::vector<std::vector<std::byte>> streams{kThreeLines};
};

std::vector<std::byte> fragment_of(const std::vector<std::byte>& message, uint64_t number, size_t offset) {
  const size_t length = std::min(kSmallGrid, message.size() - offset);
  FragmentHeader header{.envelope = {{number}},
                        .message = number,
                        .size_bytes = message.size(),
                        .offset_bytes = offset,
                        .length_bytes = static_cast<uint32_t>(length),
                        .payload_crc = crc32c({message.data() + offset, length}, 0)};
  seal(header);
  std::vector<std::byte> bytes(sizeof header + length);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::copy_n(message.begin() + static_cast<ptrdiff_t>(offset), length, bytes.begin() + sizeof header);
  return bytes;
}

void append(std::vector<std::byte>& stream, const std::vector<std::byte>& bytes) {
  stream.insert(stream.end(), bytes.begin(), bytes.end());
}

// Line `dead` dies after some fragments; what it has been given until then comes again, but for the first ones, which
// were acknowledged.
Sent send_with_a_death(std::mt19937_64& random, size_t count) {
  Sent sent;
  std::vector<std::vector<std::byte>> fragments;
  std::vector<bool> opens;
  for (size_t number = 0; number < count; ++number) {
    std::vector<std::byte>& message = sent.messages.emplace_back(random() % 6000);
    for (std::byte& byte : message) byte = static_cast<std::byte>(random());
    for (size_t offset = 0; offset == 0 || offset < message.size(); offset += kSmallGrid) {
      fragments.push_back(fragment_of(message, number, offset));
      opens.push_back(offset == 0);
    }
  }
  const size_t death = random() % fragments.size(), dead = random() % kThreeLines;
  std::vector<std::vector<std::byte>> of_dead;
  for (size_t i = 0; i < death; ++i) {
    const size_t line = opens[i] ? 0 : random() % kThreeLines;
    line == dead ? of_dead.push_back(fragments[i]) : append(sent.streams[line], fragments[i]);
  }
  const size_t acknowledged = random() % (of_dead.size() + 1);
  const size_t arrived = acknowledged + random() % (of_dead.size() - acknowledged + 1);
  for (size_t i = 0; i < arrived; ++i) append(sent.streams[dead], of_dead[i]);
  if (arrived < of_dead.size()) {  // a part of the next one
    const auto& cut = of_dead[arrived];
    append(sent.streams[dead], {cut.begin(), cut.begin() + static_cast<ptrdiff_t>(random() % cut.size())});
  }
  const auto other = [&] { return (dead + 1 + random() % (kThreeLines - 1)) % kThreeLines; };
  for (size_t i = acknowledged; i < of_dead.size(); ++i) append(sent.streams[other()], of_dead[i]);
  const size_t opening = dead == 0 ? 1 : 0;
  for (size_t i = death; i < fragments.size(); ++i) append(sent.streams[opens[i] ? opening : other()], fragments[i]);
  return sent;
}

void expect_all(const Sent& sent) {
  Ends ends(kThreeLines);
  Readiness readiness;
  for (const auto& line : ends.lines) line->establish(readiness);
  static BufferPool pool(kSmallGrid);
  const Route route{.self = 0, .peer = 1, .channel = 0, .address = "10.0.0.1:7"};
  Rails rails(route, ends.lines, kLimit);
  Receiver receiver(route, ends.lines, rails, kSmallGrid, true, pool);
  for (size_t line = 0; line < kThreeLines; ++line) {
    const auto& stream = sent.streams[line];
    ASSERT_EQ(::send(ends.far[line], stream.data(), stream.size(), 0), static_cast<ssize_t>(stream.size()));
  }
  std::vector<std::vector<std::byte>> targets(sent.messages.size());
  std::vector<std::unique_ptr<CopyingSink>> sinks(sent.messages.size());
  Events events;
  const auto start = Clock::now();
  for (size_t posted = 0; events.completed.size() < sent.messages.size();) {
    while (posted < sent.messages.size() && posted < events.completed.size() + 2) {
      const size_t size_bytes = sent.messages[posted].size();
      targets[posted].resize(size_bytes);
      if (posted % 2 == 0) sinks[posted] = std::make_unique<CopyingSink>(size_bytes);
      receiver.post({.expected = {{posted}},
                     .size_bytes = size_bytes,
                     .target = sinks[posted] ? nullptr : targets[posted].data(),
                     .sink = sinks[posted].get(),
                     .token = posted});
      ++posted;
    }
    ASSERT_EQ(receiver.pump(false, events).message(), "");
    ASSERT_FALSE(events.mismatch.has_value());
    ASSERT_LT(Clock::now() - start, std::chrono::seconds(20)) << events.completed.size() << " messages have come";
  }
  for (size_t i = 0; i < sent.messages.size(); ++i) {
    EXPECT_EQ(events.completed[i], i);
    EXPECT_EQ(sinks[i] ? sinks[i]->bytes : targets[i], sent.messages[i]) << "message " << i;
    if (sinks[i]) {
      EXPECT_EQ(sinks[i]->consumed_bytes, sent.messages[i].size()) << "message " << i;
    }
  }
}

TEST(Repeats, AreDroppedAndNothingIsLostWhereverALineDies) {
  for (uint64_t seed = 1; seed <= 300 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    expect_all(send_with_a_death(random, 8));
  }
}

// What is missing stands behind a message that is posted only after it.
TEST(Repeats, ReachAReceiverBehindWhatNobodyHasAskedFor) {
  Sent sent;
  for (size_t number = 0; number < 4; ++number) sent.messages.emplace_back(3000, static_cast<std::byte>(number));
  append(sent.streams[0], fragment_of(sent.messages[0], 0, 0));
  for (const size_t number : {2, 3}) {
    for (const size_t offset : {0, 1024, 2048})
      append(sent.streams[1], fragment_of(sent.messages[number], number, offset));
  }
  for (const size_t offset : {1024, 2048}) append(sent.streams[1], fragment_of(sent.messages[0], 0, offset));
  for (const size_t offset : {0, 1024, 2048}) append(sent.streams[1], fragment_of(sent.messages[1], 1, offset));
  expect_all(sent);
}

}  // namespace
}  // namespace ccom::tcp
