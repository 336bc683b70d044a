// SPDX-License-Identifier: Apache-2.0
//
// What an algorithm of messages takes on a machine of any kind, by closed forms of the simulator's model
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
// rank's own posting) has to do for it. Plain hosts have one window, and no rank's work overlaps with its waiting.
#pragma once

#include "algorithms/cost.h"
#include "planner/mediums.h"

namespace ccom {

struct Price {
  Cost cost;
  double time_ns = 0;
  TimeParts parts = {};
  int roundings = 0;

  void add(Medium::Kind kind, double wait_ns, double move_ns);
};

class MessagePricer {
 public:
  // flows: that share a plain host's network at the same time; 0: as many as it has ranks. All outlive it.
  MessagePricer(const Topology& topology, const MachineView& view, const Question& question, double flows = 0)
      : question_(question), mediums_(topology, view, question, flows) {}

  Price price(const MessageAlgorithm& algorithm) const;
  // The same for any algorithm, but for Blocks, by the steps of all ranks; 0 if they do not fit each other.
  Price price_by_steps(const MessageAlgorithm& algorithm) const;
  // Says in which order ranks send what several trees carry, where that matters.
  void order_sends(MessageAlgorithm& algorithm) const;
  // Of messages between hosts, and inside a host, that cost a rank so much.
  Price price_across(const Cost& cost) const;
  Price price_inside(const Cost& cost) const;

 private:
  const Question& question_;
  const Mediums mediums_;
};

// Room-private (torus_pricing.cc): an allreduce by bucket along the dimensions of the machine, one rank for each device
// of one host, is priced message by message.
bool is_torus_of_machine(const MachineView& view, Collective collective, const Staged& shape);
Price price_torus(const Mediums& mediums, double n, const Staged& shape);

// Room-private (tree_pricing.cc). Each tree has an equal share of the `n` bytes.
Price price_trees(const Mediums& mediums, Collective collective, double n, const std::vector<Tree>& trees);
// Tree::lead and Tree::egress, for several trees.
void order_sends(const Mediums& mediums, double n, std::vector<Tree>& trees);

}  // namespace ccom
