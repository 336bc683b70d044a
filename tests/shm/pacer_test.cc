// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of a fabric's speeds, on a clock that the test holds: what a message takes alone, what it waits for,
// and who comes first.
#include "transports/shm/pacer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

namespace ccom::shm {
namespace {

// Numbered by `line`: 2 ns a byte and 100 ns; 1 ns a byte, 10 ns, and at least 500 ns busy; 4 ns a byte and 1000 ns.
constexpr ShmWire kWires[] = {{0, 2, 100, 0}, {1, 1, 10, 500}, {2, 4, 1000, 0}};

class PacedWires : public testing::Test {
 protected:
  uint64_t after(std::vector<ShmWire> way, uint64_t head_ns, size_t size_bytes) {
    Flight flight{.send = {{}, payload(size_bytes)}, .way = &way, .head_ns = head_ns, .tail_ns = head_ns};
    while (flight.hop < way.size()) take_wire(flight, lines_);
    return flight.tail_ns;
  }
  ConstBytes payload(size_t size_bytes) const { return ConstBytes(payload_).first(size_bytes); }
  // To the rank at place 1 over wire 0, to the one at place 2 over wire 2.
  Pacer rank(double post_ns) { return rank({.lines = 3, .post_ns = post_ns, .ways = {{}, {kWires[0]}, {kWires[2]}}}); }
  Pacer rank(const ShmFabric& fabric) {
    return Pacer(fabric, lines_, [this] { return now_; });
  }
  void post(Pacer& pacer, int place, size_t size_bytes, Token token = 0) {
    note(pacer.post(nullptr, place, {{}, payload(size_bytes), token}));
  }
  void note(const std::optional<Flight>& flight) {
    if (flight) arrivals_[flight->send.token] = flight->tail_ns;
  }
  // Everything that is under way, as processes that always wake up in time: arrivals by token.
  std::map<Token, uint64_t> in_time(std::vector<Pacer*> pacers) {
    while (true) {
      Pacer* const next = *std::ranges::min_element(pacers, {}, &Pacer::next_head_ns);
      if (next->next_head_ns() == UINT64_MAX) return std::exchange(arrivals_, {});
      note(next->advance());
    }
  }
  // When a message that is posted now, with nothing else under way, arrives.
  uint64_t arrival(Pacer& pacer, int place, size_t size_bytes) {
    post(pacer, place, size_bytes);
    return in_time({&pacer}).at(0);
  }
  std::map<Token, uint64_t> arrivals_;
  const std::vector<std::byte> payload_ = std::vector<std::byte>(1000);
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
  EXPECT_EQ(arrival(pacer, 1, 1000), now_ + 2000 + 100);
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
  EXPECT_EQ(arrival(pacer, 1, 1000), now_ + 50 + 2100);
  EXPECT_EQ(arrival(pacer, 2, 1000), now_ + 100 + 5000);
}

TEST_F(PacedWires, RanksWaitForEachOtherOnAWire) {
  Pacer one = rank(0), other = rank(0);
  EXPECT_EQ(arrival(one, 1, 1000), now_ + 2100);
  EXPECT_EQ(arrival(other, 1, 1000), now_ + 4100);
}

// The two ranks reach a third over wires of their own, 0 and 1, and then over wire 2, which is busy for 4000 ns with
// each message.
TEST_F(PacedWires, ALaterWireIsTakenInTheOrderOfArrivals) {
  Pacer one = rank({.lines = 3, .ways = {{}, {}, {kWires[0], kWires[2]}}});
  Pacer other = rank({.lines = 3, .post_ns = 500, .ways = {{}, {}, {kWires[1], kWires[2]}}});
  for (const Token token : {1, 2, 3}) post(one, 2, 1000, token);  // there at 100, 2100 and 4100
  post(other, 2, 1000, 9);                                        // at 510
  const std::map<Token, uint64_t> arrivals = in_time({&one, &other});
  EXPECT_EQ(arrivals.at(1), now_ + 100 + 4000 + 1000);
  EXPECT_EQ(arrivals.at(9), now_ + 4100 + 4000 + 1000) << "not behind all that the first rank has posted";
  EXPECT_EQ(arrivals.at(2), now_ + 8100 + 4000 + 1000);
  EXPECT_EQ(arrivals.at(3), now_ + 12100 + 4000 + 1000);
}

TEST_F(PacedWires, AFirstWireIsTakenAtThePost) {
  Pacer pacer = rank(500);
  EXPECT_EQ(pacer.post(nullptr, 1, {})->tail_ns, now_ + 500 + 100);
  EXPECT_EQ(pacer.post(nullptr, 1, {})->tail_ns, now_ + 1000 + 100) << "though it has not started";
  EXPECT_EQ(pacer.next_head_ns(), UINT64_MAX);
}

// The head that is next is that of a message posted later, over a fast way; messages over one way keep their order.
TEST_F(PacedWires, HeadsOfARankMoveInTheOrderOfTheirTimes) {
  Pacer pacer = rank({.lines = 3, .ways = {{}, {kWires[2], kWires[0]}, {kWires[1], kWires[0]}}});
  post(pacer, 1, 0, 1);
  post(pacer, 1, 0, 2);
  post(pacer, 2, 0, 3);
  EXPECT_EQ(pacer.next_head_ns(), now_ + 10);
  for (const Token token : {3, 1, 2}) EXPECT_EQ(pacer.advance()->send.token, token);
  EXPECT_EQ(pacer.next_head_ns(), UINT64_MAX);
}

TEST_F(PacedWires, ARankThatWakesUpLateTakesAWireAsOfTheArrival) {
  Pacer pacer = rank({.lines = 3, .ways = {{}, {kWires[0], kWires[2]}}});
  post(pacer, 1, 1000);
  const uint64_t posted = now_;
  now_ += 7'000'000;
  EXPECT_EQ(pacer.advance()->tail_ns, posted + 100 + 4000 + 1000);
}

TEST_F(PacedWires, ARankThatIsToldLateReactsAtTheTimeOfTheArrival) {
  Pacer pacer = rank(0);
  const uint64_t due = now_;
  now_ += 7'000'000;
  pacer.notify(due);
  now_ += Pacer::kOwnNs;
  EXPECT_EQ(arrival(pacer, 1, 1000), due + 2100);
}

TEST_F(PacedWires, WhatAProgramDoesForItselfCounts) {
  Pacer pacer = rank(0);
  pacer.notify(now_ - 500);
  now_ += Pacer::kOwnNs + 1;
  EXPECT_EQ(arrival(pacer, 1, 1000), now_ + 2100);
}

TEST_F(PacedWires, ARankNeverGoesBackInTime) {
  Pacer pacer = rank(0);
  pacer.notify(now_);
  pacer.notify(now_ - 1000);
  EXPECT_EQ(arrival(pacer, 1, 1000), now_ + 2100);
}

}  // namespace
}  // namespace ccom::shm
