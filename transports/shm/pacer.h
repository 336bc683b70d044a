// SPDX-License-Identifier: Apache-2.0
//
// Emulates the speeds of a fabric on shared memory: computes when a message would arrive there, with all times scaled
// by one factor.
//
// The model is the simulator's (src/sim). A rank starts messages one after another, post_ns each. A message enters each
// wire of its route when its head has arrived and the wire is free, occupies it for its bytes (at least the wire's
// post_ns), and its head reaches the next wire one latency later. The message has arrived when its tail has.
//
// Whole messages are reserved at once, when posted: a message that waits for a wire waits for all of the previous one,
// and how bytes move through the rings does not matter if they are there in time. Later wires of a route are thus
// occupied in the order of posts, not of arrivals.
//
// What arrives to be reduced (Receive::sink) counts as received when the rank has read it and its own part, one thing
// after another, starts of messages included; the bytes were combined as they came.
//
// A rank's emulated clock is not the machine's: a rank that learns of an arrival late, because 32 of them share two
// processors, reacts at the time of the arrival. Otherwise every hop would add the machine's delays to the fabric's.
// Only time that a program itself spends outside the transport, if more than kOwnNs, advances its clock.
#pragma once

#include <atomic>
#include <functional>

#include "transports/shm/factory.h"
#include "transports/shm/layout.h"

namespace ccom::shm {

// In the segment; initially zero. Times are those of CLOCK_MONOTONIC, which all processes of a host share.
struct WireLine {
  alignas(kLineBytes) std::atomic<uint64_t> free_at_ns;
  std::atomic<uint64_t> bytes;  // payload, in total
};
static_assert(sizeof(WireLine) == kLineBytes);

// Reserves the wires of `way`, in order, for a message whose head reaches the first one at `head_ns`. Returns when its
// tail has arrived. Thread-safe.
uint64_t reserve(const std::vector<ShmWire>& way, WireLine* lines, uint64_t head_ns, size_t size_bytes);

// State of one rank; used by the transport's thread.
class Pacer {
 public:
  using Now = std::function<uint64_t()>;  // ns
  static constexpr uint64_t kOwnNs = 1'000'000;

  Pacer(const ShmFabric& fabric, WireLine* lines, Now now);

  // A message to local rank `place` is posted now: returns when it arrives.
  uint64_t post(int local_rank, size_t size_bytes);
  // When the rank has reduced a message that arrived at `at_ns`. Calls come in the order of arrivals.
  uint64_t reduce(uint64_t at_ns, size_t size_bytes);
  bool reduces() const { return fabric_.reduce_ns_per_byte > 0; }
  // The program is notified now of an event at `at_ns`.
  void notify(uint64_t at_ns);
  uint64_t now() const { return now_(); }

 private:
  const ShmFabric fabric_;
  WireLine* const lines_;
  const Now now_;
  uint64_t left_ns_ = 0;  // when the program was last notified or posted
  uint64_t rank_ns_ = 0;  // the rank's emulated clock
  uint64_t free_ns_ = 0;  // when it has started its last message, or reduced one
};

}  // namespace ccom::shm
