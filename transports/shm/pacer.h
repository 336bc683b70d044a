// SPDX-License-Identifier: Apache-2.0
//
// Emulates the speeds of a fabric on shared memory: computes when a message would arrive there, with all times scaled
// by one factor.
//
// The model is the simulator's (src/sim). A rank starts messages one after another, post_ns each. A message enters each
// wire of its way when its head has arrived and the wire is free, first come, first served; it occupies the wire for
// its bytes (at least the wire's post_ns), and its head reaches the next wire one latency later. The message has
// arrived when its tail has.
//
// A sender takes the first wire of a way when it posts the message, and each further one only when the time has come at
// which the head gets there: by then whatever got there earlier has been posted, and has taken it. Had it taken all
// wires at once, a rank that posts much would keep the later ones from all others for as long. On a wire a message
// waits for all of the previous one. Its frame, which says when it arrives, and its bytes go into the ring when it has
// taken the last wire of its way, while they are under way on that.
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
#include <optional>
#include <vector>

#include "transports/shm/factory.h"
#include "transports/shm/layout.h"
#include "transports/transport.h"

namespace ccom::shm {

// In the segment; initially zero. Times are those of CLOCK_MONOTONIC, which all processes of a host share.
struct WireLine {
  alignas(kLineBytes) std::atomic<uint64_t> free_at_ns;
  std::atomic<uint64_t> bytes;  // payload, in total
};
static_assert(sizeof(WireLine) == kLineBytes);

class ShmChannel;

// A message that has not got to the last wire of its way.
struct Flight {
  ShmChannel* channel = nullptr;
  Send send;
  const std::vector<ShmWire>* way = nullptr;
  size_t hop = 0;        // wires that it has taken
  uint64_t head_ns = 0;  // when its head gets to the next one; behind the last one, to the receiver
  uint64_t tail_ns = 0;  // when its tail does
  uint64_t number = 0;   // of the rank's messages
};

// Takes the next wire. Thread-safe.
void take_wire(Flight& flight, WireLine* lines);

// State of one rank; used by the transport's thread.
class Pacer {
 public:
  using Now = std::function<uint64_t()>;  // ns
  static constexpr uint64_t kOwnNs = 1'000'000;

  Pacer(const ShmFabric& fabric, WireLine* lines, Now now);

  // A message is posted now: takes its first wire, and is returned if that is the only one of its way.
  std::optional<Flight> post(ShmChannel* channel, int local_rank, const Send& send);
  // When the next head gets to a wire; UINT64_MAX if nothing is under way.
  uint64_t next_head_ns() const { return flights_.empty() ? UINT64_MAX : flights_.front().head_ns; }
  // Its message takes that wire, and is returned if it was the last one of the way. Messages of a channel are returned
  // in their order. Not if nothing is under way.
  std::optional<Flight> advance();
  // Forgets what is under way.
  void clear() { flights_.clear(); }
  // When the rank has reduced a message that arrived at `at_ns`. Calls come in the order of arrivals.
  uint64_t reduce(uint64_t at_ns, size_t size_bytes);
  bool reduces() const { return fabric_.reduce_ns_per_byte > 0; }
  // The program is notified now of an event at `at_ns`.
  void notify(uint64_t at_ns);
  uint64_t now() const { return now_(); }

 private:
  std::optional<Flight> go_on(Flight& flight);

  const ShmFabric fabric_;
  WireLine* const lines_;
  const Now now_;
  uint64_t left_ns_ = 0;         // when the program was last notified or posted
  uint64_t rank_ns_ = 0;         // the rank's emulated clock
  uint64_t free_ns_ = 0;         // when it has started its last message, or reduced one
  uint64_t posted_ = 0;          // messages
  std::vector<Flight> flights_;  // a heap: the earliest head first
};

}  // namespace ccom::shm
