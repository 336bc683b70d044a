// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of a fabric's speeds, on a clock that the test holds: what a message takes alone, and what it waits
// for.
#include "transports/shm/pacer.h"

#include <gtest/gtest.h>

#include <thread>

namespace ccom::shm {
namespace {

// Numbered by `line`: 2 ns a byte and 100 ns; 1 ns a byte, 10 ns, and at least 500 ns busy; 4 ns a byte and 1000 ns.
constexpr ShmWire kWires[] = {{0, 2, 100, 0}, {1, 1, 10, 500}, {2, 4, 1000, 0}};

class PacedWires : public testing::Test {
 protected:
  uint64_t after(std::vector<ShmWire> way, uint64_t head_ns, size_t size_bytes) {
    return reserve(way, lines_, head_ns, size_bytes);
  }
  // To the rank at place 1 over wire 0, to the one at place 2 over wire 2.
  Pacer rank(double post_ns) {
    const ShmFabric fabric{.lines = 3, .post_ns = post_ns, .ways = {{}, {kWires[0]}, {kWires[2]}}};
    return Pacer(fabric, lines_, [this] { return now_; });
  }
  WireLine lines_[3]{};
  uint64_t now_ = 1'000'000'000;
};

TEST_F(PacedWires, AMessageAloneTakesItsLatenciesAndItsLeastBandwidth) {
  EXPECT_EQ(after({kWires[0]}, 5000, 1000), 5000u + 2000 + 100);
  EXPECT_EQ(after({kWires[1]}, 5000, 1000), 5000u + 1000 + 10);
}

TEST_F(PacedWires, PartsOfALongMessageAreOnSeveralWiresAtOnce) {
  EXPECT_EQ(after({kWires[0], kWires[1], kWires[2]}, 5000, 1000), 5000u + 4000 + 100 + 10 + 1000);
}

TEST_F(PacedWires, ASlowFirstWireBoundsTheTailBehindFastOnes) {
  EXPECT_EQ(after({kWires[2], kWires[0]}, 0, 1000), 4000u + 1000 + 100);
}

TEST_F(PacedWires, AShortMessageKeepsAWireForItsPostTime) {
  EXPECT_EQ(after({kWires[1]}, 0, 8), 510u);
  EXPECT_EQ(after({kWires[1]}, 0, 8), 500u + 510);
}

TEST_F(PacedWires, MessagesOnOneWireFollowEachOther) {
  EXPECT_EQ(after({kWires[0]}, 0, 1000), 2100u);
  EXPECT_EQ(after({kWires[0]}, 500, 1000), 4100u) << "waits for the first to be through, not for its arrival";
  EXPECT_EQ(after({kWires[0]}, 9000, 1000), 9000u + 2100) << "free again";
  EXPECT_EQ(after({kWires[2]}, 500, 1000), 500u + 5000) << "another wire";
}

TEST_F(PacedWires, AHeldUpHeadIsLateOnEveryWireBehind) {
  after({kWires[0]}, 0, 1000);  // until 2000
  EXPECT_EQ(after({kWires[0], kWires[1]}, 0, 1000), 2000u + 2000 + 110);
  EXPECT_EQ(lines_[1].free_at_ns, 2000u + 100 + 1000) << "busy from the head's arrival on";
}

TEST_F(PacedWires, EveryWireCountsItsBytes) {
  after({kWires[0], kWires[1]}, 0, 1000);
  after({kWires[1]}, 0, 8);
  EXPECT_EQ(lines_[0].bytes, 1000u);
  EXPECT_EQ(lines_[1].bytes, 1008u);
  EXPECT_EQ(lines_[2].bytes, 0u);
}

TEST_F(PacedWires, ARankReducesOneMessageAfterAnother) {
  Pacer pacer({.lines = 3, .reduce_ns_per_byte = 0.5, .ways = {{}, {kWires[0]}, {kWires[2]}}}, lines_,
              [this] { return now_; });
  EXPECT_TRUE(pacer.reduces());
  EXPECT_EQ(pacer.reduce(5000, 1000), 5000u + 1000) << "reads what came and its own part";
  EXPECT_EQ(pacer.reduce(5500, 1000), 5000u + 2000);
  EXPECT_EQ(pacer.reduce(9000, 1000), 9000u + 1000);
  EXPECT_EQ(pacer.post(1, 1000), now_ + 2000 + 100);
  EXPECT_EQ(pacer.reduce(now_, 1000), now_ + 1000) << "its start took nothing";
  EXPECT_FALSE(rank(0).reduces());
}

TEST_F(PacedWires, NoReservationIsLostBetweenThreads) {
  constexpr int kMessages = 20000;
  const auto reserve_many = [this] {
    for (int i = 0; i < kMessages; ++i) after({kWires[0]}, 0, 10);
  };
  std::thread other(reserve_many);
  reserve_many();
  other.join();
  EXPECT_EQ(lines_[0].free_at_ns, 2u * kMessages * 20);
}

TEST_F(PacedWires, ARankStartsOneMessageAfterAnother) {
  Pacer pacer = rank(50);
  EXPECT_EQ(pacer.post(1, 1000), now_ + 50 + 2100);
  EXPECT_EQ(pacer.post(2, 1000), now_ + 100 + 5000);
}

TEST_F(PacedWires, RanksWaitForEachOtherOnAWire) {
  Pacer one = rank(0), other = rank(0);
  EXPECT_EQ(one.post(1, 1000), now_ + 2100);
  EXPECT_EQ(other.post(1, 1000), now_ + 4100);
}

TEST_F(PacedWires, ARankThatIsToldLateReactsAtTheTimeOfTheArrival) {
  Pacer pacer = rank(0);
  const uint64_t arrival = now_;
  now_ += 7'000'000;
  pacer.notify(arrival);
  now_ += Pacer::kOwnNs;
  EXPECT_EQ(pacer.post(1, 1000), arrival + 2100);
}

TEST_F(PacedWires, WhatAProgramDoesForItselfCounts) {
  Pacer pacer = rank(0);
  pacer.notify(now_ - 500);
  now_ += Pacer::kOwnNs + 1;
  EXPECT_EQ(pacer.post(1, 1000), now_ + 2100);
}

TEST_F(PacedWires, ARankNeverGoesBackInTime) {
  Pacer pacer = rank(0);
  pacer.notify(now_);
  pacer.notify(now_ - 1000);
  EXPECT_EQ(pacer.post(1, 1000), now_ + 2100);
}

}  // namespace
}  // namespace ccom::shm
