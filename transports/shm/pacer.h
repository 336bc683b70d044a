// SPDX-License-Identifier: Apache-2.0
//
// A fabric's speeds on shared memory: when a message would have arrived there, everything slowed down by one factor.
//
// The model is that of the simulator (src/sim). A rank starts one message after another, post_ns each. A message takes
// each wire of its way when its head is there and the wire is free, keeps it busy for its bytes (at least the wire's
// post_ns), and its head is at the next wire a latency later. It has arrived when its tail has.
//
// Whole messages are reserved, at once, when they are posted: so one that waits for a wire waits for all of the one
// before it, and how the bytes get through the rings does not matter as long as they are there in time. Later wires of
// a way are thus taken in the order of posts and not of arrivals.
//
// A rank's own clock is not the machine's: a rank that is told of an arrival late, because 32 of them share two
// processors, reacts at the time of the arrival. Else every hop would add the machine's delays to the fabric's. Only
// what a program does for itself, more than kOwnNs outside the transport, moves its clock on.
#pragma once

#include <atomic>
#include <functional>

#include "transports/shm/factory.h"
#include "transports/shm/layout.h"

namespace ccom::shm {

// In the segment; zero at first. Times are those of CLOCK_MONOTONIC, which all processes of a host share.
struct WireLine {
  alignas(kLineBytes) std::atomic<uint64_t> free_at_ns;
  std::atomic<uint64_t> bytes;  // of payload, ever
};
static_assert(sizeof(WireLine) == kLineBytes);

// Takes the wires of `way`, one after another, for a message whose head is at the first one at `head_ns`. When its tail
// has arrived. Thread-safe.
uint64_t reserve(const std::vector<ShmWire>& way, WireLine* lines, uint64_t head_ns, size_t size_bytes);

// Of one rank; belongs to the transport's thread.
class Pacer {
 public:
  using Now = std::function<uint64_t()>;  // ns
  static constexpr uint64_t kOwnNs = 1'000'000;

  Pacer(const ShmFabric& fabric, WireLine* lines, Now now);

  // A message to the rank at `place` is posted now: when it arrives.
  uint64_t post(int place, size_t size_bytes);
  // The program is told now of what happened at `at_ns`.
  void tell(uint64_t at_ns);
  uint64_t now() const { return now_(); }

 private:
  const ShmFabric fabric_;
  WireLine* const lines_;
  const Now now_;
  uint64_t left_ns_ = 0;  // when the program was last told or posted something
  uint64_t rank_ns_ = 0;  // the rank's own clock
  uint64_t free_ns_ = 0;  // when it has started its last message
};

}  // namespace ccom::shm
