// SPDX-License-Identifier: Apache-2.0
//
// What an algorithm costs one rank, in closed form: summed over its phases by the planner, weighed with a topology's
// speeds.
//
// n is the number of bytes of the data a group works on (the whole vector of the phase), p the group's size. The
// formulas stand beside the plans they describe; tests compare them with the plans themselves.
#pragma once

#include "algorithms/shape.h"
#include "base/types.h"

namespace ccom {

struct Cost {
  double steps = 0;    // messages that wait for one another
  double posts = 0;    // messages sent in an allreduce; where units belong to ranks, see unit_messages
  double bytes = 0;    // sent, one after another on the busiest link of the rank
  double reduced = 0;  // bytes read by reductions

  Cost& operator+=(const Cost& other) {
    steps += other.steps;
    posts += other.posts;
    bytes += other.bytes;
    reduced += other.reduced;
    return *this;
  }
  friend Cost operator+(Cost a, const Cost& b) { return a += b; }
};

// Messages that a rank sends in a reduce-scatter or allgather over one level with streams: a message is one run of one
// unit, so they are as many as the other members' units, for each stream, however few the steps.
inline double unit_messages(double p, double streams) { return (p - 1) * streams; }

Cost ring_reduce_scatter_cost(double p, double n);
Cost ring_allgather_cost(double p, double n);
Cost direct_reduce_scatter_cost(double p, double n);
Cost direct_allgather_cost(double p, double n);
Cost one_shot_cost(double p, double n);
Cost circulant_reduce_scatter_cost(double p, double n);
Cost circulant_allgather_cost(double p, double n);
Cost recursive_doubling_cost(double p, double n);
Cost bine_reduce_scatter_cost(double p, double n);
Cost bine_allgather_cost(double p, double n);
// Over the level's streams; bytes are those of the dimension whose links carry most (torus_loads has all of them).
Cost torus_reduce_scatter_cost(const Level& level, double n);
Cost torus_allgather_cost(const Level& level, double n);
Cost swing_reduce_scatter_cost(const Level& level, double n);
Cost swing_allgather_cost(const Level& level, double n);
Cost swing_latency_cost(const Level& level, double n);
// Links that Swing's messages pass one after another in one half, or in the latency form: as many as steps on
// dimensions up to 4.
double swing_hops(const std::vector<int>& dims);
Cost rings_reduce_scatter_cost(const Level& level, double n);
Cost rings_allgather_cost(const Level& level, double n);
Cost recursive_doubling_cost(const Level& level, double n);
// Of an AllToAll along a ring of d ranks that each have n bytes for all of them; bytes are those of a directed link.
Cost ring_exchange_cost(double d, double n);

// Of a level, on the way down (its core patterns: all of it) or up; and how often a sum is rounded there.
Cost level_cost(const Level& level, double n, bool down);
int level_roundings(const Level& level);

// Of each round: of bit 1, 2, 4, ...
std::vector<Cost> bruck_alltoall_costs(double p, double n);

// Within hosts and across them.
struct RadixCost {
  Cost inside, across;
  int roundings = 0;
};
RadixCost mixed_radix_cost(const Radix& shape, double n);

}  // namespace ccom
