// SPDX-License-Identifier: Apache-2.0
//
// How long a bucket allreduce on a torus takes whose windows follow one another through several laps.
//
// All ranks do the same at the same time, so one of them and the links out of it stand for all: what it sends now is
// what it is sent. Its messages are walked through one by one by the rules of the simulator (sim/simulator.h, wires in
// turn), a few hundred to some ten thousand of them. No closed form says how latencies, the gaps of streams that change
// dimensions at different times, and the order of messages on a link add up: fitted ones were wrong by up to 26 %.
#pragma once

#include <vector>

#include "algorithms/shape.h"

namespace ccom {

struct TorusCosts {
  struct Dimension {
    double latency_ns = 0;
    double byte_ns = 0;
  };
  std::vector<Dimension> dims;  // one link and direction of each
  double post_ns = 0;           // of the rank's processor, to start a message
  double receive_ns = 0;        // to take one in
  double reduced_ns = 0;        // for each byte that arrives to be reduced, besides
};

// Of `bytes` on a level of pattern Torus.
double torus_allreduce_time(const Level& level, int windows, double bytes, const TorusCosts& costs);

}  // namespace ccom
