// SPDX-License-Identifier: Apache-2.0
//
// What an algorithm of messages takes on hosts with an imposed fabric, by closed forms of the simulator's model
// (sim/simulator.h).
//
// A call is a row of phases: down the levels, the core, up the levels. A phase of `steps` messages one after another
// with `bytes` on its busiest wire takes
//
//   steps (latency + post) + bytes / bandwidth,    or, where `sharing` ranks use a wire in turns, if that is more,
//   sharing bytes / bandwidth
//
// for while one rank's message is on its way the others use the wire. With w windows the first one takes the sum of all
// phases at 1/w of the bytes; each further one adds what the busiest kind of wire (inside devices, links, uplinks, the
// rank's own posting) has to do for it.
#pragma once

#include "planner/fabric_view.h"
#include "planner/pricing.h"

namespace ccom {

// Over the ranks of the view.
Price price_on_fabric(const Topology& topology, const FabricView& view, const Question& question,
                      const MessageAlgorithm& algorithm);

}  // namespace ccom
