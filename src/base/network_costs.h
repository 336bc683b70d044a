// SPDX-License-Identifier: Apache-2.0
//
// What messages between hosts take besides the network's latency and bandwidth, in nanoseconds: model input, like the
// speeds of links. Part of the topology (topology/topology.h); what it prices: planner/mediums.h.
#pragma once

namespace ccom {

// Defaults: TCP between two virtual machines with processors of 2.8 to 3.1 GHz.
struct NetworkCosts {
  double message_ns = 2000;   // of each message of a host's ranks, one after another: system calls, interrupts
  double flow_byte_ns = 0.5;  // at least, of each byte of one rank: its system calls and copies
  friend bool operator==(const NetworkCosts&, const NetworkCosts&) = default;
};

}  // namespace ccom
