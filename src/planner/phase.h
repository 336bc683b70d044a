// SPDX-License-Identifier: Apache-2.0
//
// Room-private: one phase of a call, as message_pricer.h prices it, and what patterns have in common there.
#pragma once

#include <algorithm>
#include <cmath>

#include "plan/shape.h"
#include "planner/mediums.h"

namespace ccom {

// One phase, for the whole vector and for one window of it.
struct Phase {
  Medium::Kind kind = Medium::kLinks;
  double steps = 1;
  double latency_ns = 0;     // of its messages, whatever their length
  double transfer_ns = 0;    // of all bytes on the busiest wire, for one rank
  double reduce_ns = 0;      // of all bytes that the rank reduces
  double gaps_ns = 0;        // that the transfer takes longer because wires wait, unless for another window
  double laps = 1;           // that windows follow one another through
  double lanes = 1;          // messages of one step that go on one by one, each as it comes
  double least_wire_ns = 0;  // that its messages occupy a wire even if they are empty
  double sharing = 1;
  double posting_ns = 0;  // of the rank
  double stretch = 1;     // how much longer wires are busy while other windows use them too

  double wire_ns(double windows) const { return std::max((transfer_ns + gaps_ns) / windows, least_wire_ns); }
  double busy_ns(double windows) const { return std::max(transfer_ns / windows, least_wire_ns); }
  // While one rank's message is on its way, the wire serves others; but never before the first has come. Lanes hide the
  // one behind the other, but not quite where both are as long: fitted to simulations of 4 to 16 hosts.
  double time_ns(double windows) const {
    const double busy_wire_ns = sharing * wire_ns(windows) + latency_ns / steps;
    const double way_ns = latency_ns + wire_ns(windows) / lanes;
    const double moved_ns =
        lanes > 1 ? std::pow(std::pow(busy_wire_ns, 4) + std::pow(way_ns, 4), 0.25) : std::max(busy_wire_ns, way_ns);
    return std::max(moved_ns, posting_ns) + reduce_ns / windows;
  }
  // What a further window adds at least: a window may begin a lap when the one before has.
  double interval_ns(double windows) const {
    return laps > 1 ? std::max(latency_ns / laps + busy_ns(windows), posting_ns) : time_ns(windows);
  }
  double work_ns(double windows) const { return sharing * busy_ns(windows) * stretch; }
};

// With partners all over the list.
inline bool is_far(const Level& level) {
  return level.pattern == Pattern::Circulant || level.pattern == Pattern::Bine ||
         level.pattern == Pattern::BineLatency || (level.pattern == Pattern::RecursiveDoubling && level.dims.empty());
}

inline bool is_to_all(Pattern pattern) { return pattern == Pattern::Direct || pattern == Pattern::OneShot; }

}  // namespace ccom
