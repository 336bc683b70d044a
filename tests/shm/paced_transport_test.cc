// SPDX-License-Identifier: Apache-2.0
//
// Transports whose wires have speeds, on the real clock: nothing arrives early, whatever the machine does; nothing is
// much later, in the best of several attempts; and whoever waits sleeps.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <thread>

#include "tests/harness/results.h"
#include "tests/harness/threads.h"
#include "transports/shm/factory.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

constexpr auto kPacedPatience = std::chrono::seconds(30);
constexpr size_t kRingBytes = size_t{256} << 10;  // for a whole message

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Ranks 0, 1 and 2, driven by one thread. 0 and 1 both reach 2 over wire 0 alone: 100 ns a byte and 2 ms. 2 reaches
// 0 over wire 1, which is like it. 0 and 2 reach 1 over wires of their own, 2 and 3, and then over wire 4.
class Paced : public testing::Test {
 protected:
  Paced() {
    segment_ = *SharedSegment::create(kWiresOffset + shm_wires_bytes(kWires), 0);
    for (Rank rank = 0; rank < 3; ++rank) {
      ShmConfig config;
      config.rank = rank;
      config.local_ranks = {0, 1, 2};
      config.segment = segment_.get();
      config.ring_bytes = kRingBytes;
      fabrics_[rank] = fabric(rank);
      config.fabric = &fabrics_[rank];
      transports_.push_back(*make_shm_transport(config));
    }
    run_ranks(3, [&](Rank rank) {
      std::vector<Peer> peers;
      for (Rank peer = 0; peer < 3; ++peer) {
        if (peer != rank) peers.push_back({peer, "", 1});
      }
      EXPECT_TRUE(transports_[static_cast<size_t>(rank)]->connect(peers, Deadline::after(kPacedPatience)).is_ok());
    });
  }
  static ShmFabric fabric(Rank rank) {
    ShmFabric fabric{.offset_bytes = kWiresOffset, .lines = kWires, .ways = {{}, {}, {}}};
    if (rank != 2) fabric.ways[2] = {wire(0)};
    if (rank == 2) fabric.ways[0] = {wire(1)};
    if (rank != 1) fabric.ways[1] = {wire(rank == 0 ? 2 : 3), wire(4)};
    return fabric;
  }
  static ShmWire wire(uint32_t line) { return {.line = line, .ns_per_byte = 100, .latency_ns = 2e6}; }
  Transport& at(Rank rank) { return *transports_[static_cast<size_t>(rank)]; }
  void send(Rank from, Rank to, ConstBytes payload) {
    ASSERT_TRUE((*at(from).channel(to, 0))->post_send({{}, payload, 1}).is_ok());
  }
  void receive(Rank at_rank, Rank from, Bytes target, bool may_end = false) {
    ASSERT_TRUE((*at(at_rank).channel(from, 0))
                    ->post_receive({{}, target.size(), target.data(), nullptr, static_cast<Token>(from), may_end})
                    .is_ok());
  }
  // Long enough after the last attempt that the ranks' own clocks start with the machine's.
  static Clock::time_point afresh() {
    std::this_thread::sleep_for(milliseconds(2));
    return Clock::now();
  }
  // Until `rank` has so many completions, which it then forgets; the others move too. Seconds from `start` to the last
  // one.
  double run(Rank rank, size_t completions, Clock::time_point start) {
    std::vector<Token>& completed = events_[rank].completed;
    while (completed.size() < completions && seconds_since(start) < 30) {
      for (Rank one = 0; one < 3; ++one) EXPECT_TRUE(at(one).progress(events_[one]).is_ok());
      if (completed.size() < completions) at(rank).wait(milliseconds(10));
    }
    EXPECT_EQ(completed.size(), completions);
    completed.clear();
    return seconds_since(start);
  }

  // Until `rank` has a completion with this token; seconds.
  double until_told(Rank rank, Token token, Clock::time_point start) {
    const std::vector<Token>& completed = events_[rank].completed;
    while (std::ranges::count(completed, token) == 0 && seconds_since(start) < 30) {
      for (Rank one = 0; one < 3; ++one) EXPECT_TRUE(at(one).progress(events_[one]).is_ok());
    }
    return seconds_since(start);
  }

  static constexpr uint32_t kWires = 5;
  static constexpr size_t kWiresOffset = size_t{2} << 20;
  std::unique_ptr<SharedSegment> segment_;
  ShmFabric fabrics_[3];
  Events events_[3];
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::byte> sent_ = std::vector<std::byte>(100'000, std::byte{7});
  std::vector<std::byte> received_ = std::vector<std::byte>(100'000), also_ = std::vector<std::byte>(100'000);
};

TEST_F(Paced, AMessageTakesItsBytesAndItsLatency) {
  double best = 1;
  for (int attempt = 0; attempt < 20 && best > 0.0125; ++attempt) {
    const auto start = afresh();
    receive(2, 0, received_);
    send(0, 2, sent_);
    const double took = run(2, 1, start);
    EXPECT_GE(took, 0.012) << "10 ms of bytes and 2 ms";
    best = std::min(best, took);
    run(0, 1, start);
  }
  EXPECT_EQ(received_, sent_);
  EXPECT_LE(best, 0.0125);
}

TEST_F(Paced, TwoSendersOverOneWireTakeTwiceAsLong) {
  double best = 1;
  for (int attempt = 0; attempt < 20 && best > 0.023; ++attempt) {
    const auto start = afresh();
    receive(2, 0, received_);
    receive(2, 1, also_);
    send(0, 2, sent_);
    send(1, 2, sent_);
    const double took = run(2, 2, start);
    EXPECT_GE(took, 0.022);
    best = std::min(best, took);
    run(0, 1, start);
    run(1, 1, start);
  }
  EXPECT_LE(best, 0.023);
  const std::vector<uint64_t> traffic = shm_wire_traffic(*segment_, fabrics_[0]);
  EXPECT_EQ(traffic[0] % 200'000, 0u);
  EXPECT_GT(traffic[0], 0u);
  EXPECT_EQ(traffic[1], 0u);
}

TEST_F(Paced, DirectionsDoNotDisturbEachOther) {
  double best = 1;
  for (int attempt = 0; attempt < 20 && best > 0.013; ++attempt) {
    const auto start = afresh();
    receive(2, 0, received_);
    receive(0, 2, also_);
    send(0, 2, sent_);
    send(2, 0, sent_);
    best = std::min(best, run(2, 2, start));
    run(0, 2, start);
  }
  EXPECT_LE(best, 0.013);
}

// Rank 0 posts what keeps the last wire for 30 ms, and rank 2 a short message afterwards.
TEST_F(Paced, WhatIsPostedLaterComesFirstWhereItArrivesFirst) {
  double best = 1;
  for (int attempt = 0; attempt < 20 && best > 0.02; ++attempt) {
    const auto start = afresh();
    for (int i = 0; i < 3; ++i) receive(1, 0, received_);
    receive(1, 2, Bytes(also_).first(8));
    for (int i = 0; i < 3; ++i) send(0, 1, sent_);
    send(2, 1, ConstBytes(sent_).first(8));
    best = std::min(best, until_told(1, 2, start));
    EXPECT_GE(run(1, 4, start), 0.034);
    run(0, 3, start);
    run(2, 1, start);
  }
  EXPECT_LE(best, 0.02) << "behind at most one of the three";
}

TEST_F(Paced, ASendIsCompleteWhenItHasArrived) {
  const auto start = afresh();
  send(0, 2, {});
  EXPECT_GE(run(0, 1, start), 0.002);
}

TEST_F(Paced, WaitingForWhatIsUnderWayTakesNoProcessor) {
  for (int i = 0; i < 10; ++i) receive(2, 0, received_);
  for (int i = 0; i < 10; ++i) send(0, 2, sent_);
  const double before = processor_seconds();
  EXPECT_GE(run(2, 10, Clock::now()), 0.09);
  EXPECT_LT(processor_seconds() - before, 0.04);
}

// The waiter must not sleep past the arrival of what it has already.
TEST_F(Paced, WaitEndsWhenTheNextMessageIsDue) {
  double best = 1;
  for (int attempt = 0; attempt < 20 && best > 0.003; ++attempt) {
    receive(2, 0, Bytes(received_).first(8));
    send(0, 2, ConstBytes(sent_).first(8));
    Events events;
    ASSERT_TRUE(at(2).progress(events).is_ok());
    ASSERT_TRUE(events.completed.empty());
    const auto start = Clock::now();
    at(2).wait(std::chrono::seconds(10));
    best = std::min(best, seconds_since(start));
    run(2, 1, start);
    run(0, 1, start);
  }
  EXPECT_LE(best, 0.003);
}

TEST_F(Paced, MessagesOfAPeerThatHasLeftStillArrive) {
  receive(2, 0, Bytes(received_).first(8), true);
  receive(2, 0, Bytes(also_).first(8), true);
  send(0, 2, ConstBytes(sent_).first(8));
  transports_[0].reset();
  Events events;
  const auto start = Clock::now();
  while (events.ended.empty() && seconds_since(start) < 30) {
    ASSERT_TRUE(at(2).progress(events).is_ok());
    at(2).wait(milliseconds(1));
  }
  EXPECT_EQ(events.completed.size(), 1u);
  EXPECT_EQ(events.ended.size(), 1u);
  EXPECT_GE(seconds_since(start), 0.001);
}

TEST_F(Paced, NothingThatIsHeldArrivesAfterStop) {
  receive(2, 0, Bytes(received_).first(8));
  send(0, 2, ConstBytes(sent_).first(8));
  send(2, 1, ConstBytes(sent_).first(8));
  Events events;
  ASSERT_TRUE(at(2).progress(events).is_ok());
  at(2).stop();
  at(0).stop();
  std::this_thread::sleep_for(milliseconds(5));  // what was paced would be due
  EXPECT_EQ(at(2).progress(events).code(), Code::Aborted);
  EXPECT_EQ(at(0).progress(events).code(), Code::Aborted);
  EXPECT_TRUE(events.completed.empty());
}

TEST_F(Paced, AFabricThatDoesNotFitIsRefused) {
  ShmConfig config;
  config.rank = 0;
  config.local_ranks = {0, 1, 2};
  config.segment = segment_.get();
  config.ring_bytes = kRingBytes;
  const auto expect_refused = [&config](auto change) {
    ShmFabric changed = fabric(0);
    change(changed);
    config.fabric = &changed;
    EXPECT_EQ(error_of(make_shm_transport(config)).code(), Code::InvalidArgument);
  };
  expect_refused([](ShmFabric& f) { f.ways.pop_back(); });
  expect_refused([](ShmFabric& f) { f.ways[2][0].line = kWires; });
  expect_refused([](ShmFabric& f) { f.offset_bytes = 64; });
  expect_refused([](ShmFabric& f) { f.offset_bytes += 4096; });
  expect_refused([](ShmFabric& f) { f.lines = 1000; });
}

}  // namespace
}  // namespace ccom
