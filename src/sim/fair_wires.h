// SPDX-License-Identifier: Apache-2.0
//
// Room-private: wires that messages share. All messages on a wire move at once, each at an equal part of its bandwidth,
// but those of one pipe (a sender, a receiver and a channel) one after another.
//
// A head goes on to the next wire a latency after it has come, also while its message waits for another one of its
// pipe.
//
// Of each wire is known how much one message has moved since it was last idle, in the time that the wire alone would
// take for it: a message that enters ends when that has grown by its own length, whoever comes or goes meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/event_queue.h"

namespace ccom {

// A message on a wire.
struct WireEntry {
  uint32_t flight = 0, hop = 0;
  uint64_t pipe = 0;
  SimTime length = 0;  // that it takes alone
};

class FairWires {
 public:
  explicit FairWires(size_t wires) : wires_(wires) {}

  static constexpr SimTime kNever = UINT64_MAX;

  // Returns when to call end() for that wire, unless enter() is called for it before.
  SimTime enter(uint32_t wire, const WireEntry& entry, SimTime now);
  // Appends what is off the wire now. Returns when to call it again, or kNever.
  SimTime end(uint32_t wire, SimTime now, std::vector<WireEntry>& off);
  // Of the calls of end() that were asked for, the one that still holds.
  bool is_due(uint32_t wire, SimTime now) const { return wires_[wire].due == now; }

 private:
  struct Moving {
    double ends = 0;  // in terms of Wire::moved
    WireEntry entry;
  };
  struct Wire {
    double moved = 0;  // by each message, in ps of the wire alone
    SimTime since = 0, due = kNever;
    std::vector<Moving> moving;
    std::vector<WireEntry> waiting;  // for one of their pipe, in order
  };

  static void advance(Wire& wire, SimTime now);
  static SimTime next(Wire& wire, SimTime now);

  std::vector<Wire> wires_;
};

}  // namespace ccom
