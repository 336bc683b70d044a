// SPDX-License-Identifier: Apache-2.0
//
// What the shm transport promises beyond the contract of all transports: memory is taken when it is needed, a peer that
// writes nonsense is named, ranks are any numbers, and it works between processes, which sleep and wake each other.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "tests/harness/child.h"
#include "tests/harness/environment.h"
#include "tests/harness/results.h"
#include "transports/shm/factory.h"
#include "transports/shm/layout.h"

namespace ccom {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);

ShmConfig config_of(Rank rank, std::vector<Rank> local_ranks, SharedSegment& segment, int channels, size_t ring_bytes) {
  ShmConfig config;
  config.rank = rank;
  config.local_ranks = std::move(local_ranks);
  config.segment = &segment;
  config.channels = channels;
  config.ring_bytes = ring_bytes;
  return config;
}

// Ranks 3 and 17, connected; one thread drives both.
class Pair : public testing::Test {
 protected:
  static constexpr size_t kRingBytes = size_t{256} << 10;
  Pair() : segment_(*SharedSegment::create(shm_region_bytes(2, 2, kRingBytes), 0)) {
    three_ = *make_shm_transport(config_of(3, {3, 17}, *segment_, 2, kRingBytes));
    seventeen_ = *make_shm_transport(config_of(17, {3, 17}, *segment_, 2, kRingBytes));
    const Peer to_three{3, "", 2}, to_seventeen{17, "", 2};
    std::thread other([this, &to_three] {
      EXPECT_TRUE(seventeen_->connect(std::span(&to_three, 1), Deadline::after(kPatience)).is_ok());
    });
    EXPECT_TRUE(three_->connect(std::span(&to_seventeen, 1), Deadline::after(kPatience)).is_ok());
    other.join();
  }
  shm::RingLines& lines(int from, int to) {
    const shm::Layout layout{2, 2, kRingBytes};
    return *layout.ring(segment_->bytes().data(), layout.ring_index(from, to, 0)).lines;
  }
  std::unique_ptr<SharedSegment> segment_;
  std::unique_ptr<Transport> three_, seventeen_;
};

TEST_F(Pair, RingsTakeMemoryOnFirstUseOnly) {
  const auto taken_bytes = [this] {
    struct stat info {};
    EXPECT_EQ(::fstat(segment_->fd(), &info), 0);
    return static_cast<size_t>(info.st_blocks) * 512;
  };
  EXPECT_EQ(taken_bytes(), shm_header_bytes(2, 2));
  EXPECT_EQ(three_->memory_bytes(), 0u);
  ASSERT_TRUE((*three_->channel(17, 1))->post_send({}).is_ok());
  EXPECT_EQ(three_->memory_bytes(), kRingBytes);
  EXPECT_EQ(taken_bytes(), shm_header_bytes(2, 2) + kRingBytes);
  ASSERT_TRUE((*three_->channel(17, 1))->post_send({}).is_ok());
  EXPECT_EQ(three_->memory_bytes(), kRingBytes);
  EXPECT_EQ(seventeen_->memory_bytes(), 0u);
}

TEST_F(Pair, NoMemoryForARingIsAnErrorOfThePost) {
  const Status status = [this] {
    const ScopedLimit limited(RLIMIT_FSIZE, shm_header_bytes(2, 2));
    return (*three_->channel(17, 0))->post_send({});
  }();
  EXPECT_EQ(status.code(), Code::OutOfMemory) << status.message();
  Events events;
  EXPECT_EQ(three_->progress(events).code(), Code::OutOfMemory) << "errors are final";
}

TEST_F(Pair, APeerWithAnImpossibleHeadIsNamed) {
  std::byte target[8];
  ASSERT_TRUE((*three_->channel(17, 0))->post_receive({{}, 8, target, nullptr, 1}).is_ok());
  lines(1, 0).head.store(uint64_t{1} << 40);
  Events events;
  const Status status = three_->progress(events);
  EXPECT_EQ(status.code(), Code::TransportError);
  EXPECT_EQ(status.peers(), std::vector<Rank>{17});
  EXPECT_TRUE(events.completed.empty());
  EXPECT_EQ((*three_->channel(17, 1))->post_send({}).code(), Code::TransportError) << "errors are final";
}

TEST_F(Pair, APeerWithAnImpossibleTailIsNamed) {
  const std::vector<std::byte> sent(2 * kRingBytes);
  ASSERT_TRUE((*three_->channel(17, 0))->post_send({{}, sent, 1}).is_ok());
  lines(0, 1).tail.store(uint64_t{1} << 40);
  Events events;
  const Status status = three_->progress(events);
  EXPECT_EQ(status.code(), Code::TransportError);
  EXPECT_EQ(status.peers(), std::vector<Rank>{17});
}

TEST(ShmTransport, RanksThatDisagreeOnTheLayoutFindOut) {
  auto segment = *SharedSegment::create(shm_region_bytes(2, 4, 8192), 0);
  auto zero = *make_shm_transport(config_of(0, {0, 1}, *segment, 1, 4096));
  auto one = *make_shm_transport(config_of(1, {0, 1}, *segment, 1, 8192));
  const Peer to_zero{0, "", 1}, to_one{1, "", 1};
  Status at_one;
  std::thread other(
      [&one, &to_zero, &at_one] { at_one = one->connect(std::span(&to_zero, 1), Deadline::after(kPatience)); });
  const Status at_zero = zero->connect(std::span(&to_one, 1), Deadline::after(kPatience));
  other.join();
  EXPECT_EQ(at_zero.code(), Code::ConfigError) << at_zero.message();
  EXPECT_EQ(at_zero.peers(), std::vector<Rank>{1});
  EXPECT_EQ(at_one.peers(), std::vector<Rank>{0});
}

TEST(ShmTransport, RefusesAConfigThatBreaksTheRules) {
  auto segment = *SharedSegment::create(shm_region_bytes(2, 1, 4096), 0);
  const ShmConfig good = config_of(0, {0, 1}, *segment, 1, 4096);
  EXPECT_TRUE(make_shm_transport(good).has_value());
  const auto expect_refused = [&good](auto change) {
    ShmConfig config = good;
    change(config);
    EXPECT_EQ(error_of(make_shm_transport(config)).code(), Code::InvalidArgument);
  };
  expect_refused([](ShmConfig& c) { c.rank = 2; });
  expect_refused([](ShmConfig& c) { c.local_ranks = {1, 0}; });
  expect_refused([](ShmConfig& c) { c.local_ranks = {0, 0}; });
  expect_refused([](ShmConfig& c) { c.local_ranks = {}; });
  expect_refused([](ShmConfig& c) { c.segment = nullptr; });
  expect_refused([](ShmConfig& c) { c.offset_bytes = 4096; });
  expect_refused([](ShmConfig& c) { c.offset_bytes = 100; });
  expect_refused([](ShmConfig& c) { c.channels = 0; });
  expect_refused([](ShmConfig& c) { c.channels = kMaxChannels + 1; });
  expect_refused([](ShmConfig& c) { c.ring_bytes = 5000; });
  expect_refused([](ShmConfig& c) { c.ring_bytes = 2048; });
}

TEST(ShmTransport, RingsShrinkWhenThereAreManyRanks) {
  EXPECT_EQ(default_ring_bytes(2, 4, size_t{256} << 20), size_t{256} << 10);
  EXPECT_EQ(default_ring_bytes(65, 4, size_t{16} << 20), size_t{64} << 10);
  EXPECT_EQ(default_ring_bytes(1000, 4, 1), 4096u);
  EXPECT_EQ(default_ring_bytes(1, 1, size_t{256} << 20), size_t{256} << 10);
}

// One side of a ping-pong that sleeps in wait() after every look; false if it hung or lost something.
bool play(SharedSegment& segment, Rank me, int rounds) {
  auto transport = *make_shm_transport(config_of(me, {0, 1}, segment, 1, 4096));
  const Peer peer{1 - me, "", 1};
  const Deadline deadline = Deadline::after(kPatience);
  if (!transport->connect(std::span(&peer, 1), deadline).is_ok()) return false;
  Channel& channel = **transport->channel(1 - me, 0);
  std::vector<std::byte> sent(10000), received(10000);
  for (int round = 0; round < rounds; ++round) {
    std::fill(sent.begin(), sent.end(), static_cast<std::byte>(round));
    const Envelope envelope{{static_cast<uint64_t>(round)}};
    if (!channel.post_send({envelope, sent, 1}).is_ok()) return false;
    if (!channel.post_receive({envelope, received.size(), received.data(), nullptr, 2}).is_ok()) return false;
    Events events;
    while (events.completed.size() < 2) {
      if (!transport->progress(events).is_ok() || events.mismatch || deadline.passed()) return false;
      if (events.completed.size() < 2) transport->wait(deadline.left());
    }
    if (received != sent) return false;
  }
  return true;
}

TEST(ShmTransport, ProcessesExchangeMessagesAndWakeEachOther) {
  auto segment = *SharedSegment::create(shm_region_bytes(2, 1, 4096), 0);
  Child other([&] { return play(*segment, 1, 300) ? 0 : 1; });
  EXPECT_TRUE(play(*segment, 0, 300));
  EXPECT_EQ(other.wait(), 0);
}

}  // namespace
}  // namespace ccom
