// SPDX-License-Identifier: Apache-2.0
//
// Ring reduce-scatter and allgather: p - 1 steps each, one neighbour in, one out.
//
// Each member sends (p-1)/p of the range, which is optimal; the latency term grows with p, so it is for long messages,
// where one stream per link is what a network likes best, and for fabrics that are rings. Every further member is a
// further rounding. Source: Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69(2), 2009. Picture:
// tests/golden/ring_allreduce_4.txt
#include "algorithms/bricks.h"
#include "algorithms/cost.h"

namespace ccom {
namespace {

// A ring walked in one direction: member i of the walk sits `direction * i` places along the list.
struct Walk {
  const Group& group;
  int direction;
  uint32_t size() const { return group.size(); }
  uint32_t wrap(int64_t index) const {
    const auto n = static_cast<int64_t>(size());
    return static_cast<uint32_t>((index % n + n) % n);
  }
  Rank next() const { return group.rank(wrap(static_cast<int64_t>(group.me) + direction)); }
  Rank previous() const { return group.rank(wrap(static_cast<int64_t>(group.me) - direction)); }
  // The part that lies `steps` places behind this member.
  Range behind(int64_t steps, Range range) const {
    return range.part(wrap(static_cast<int64_t>(group.me) - direction * steps), size());
  }
};

}  // namespace

void ring_reduce_scatter(Builder& builder, const Group& group, Range range, bool completes, int direction,
                         uint8_t channel) {
  const Walk walk{group, direction};
  const auto size = static_cast<int64_t>(walk.size());
  for (int64_t step = 0; step < size - 1; ++step) {
    builder.send(walk.next(), walk.behind(step + 1, range), channel);
    builder.receive_reduce(walk.previous(), walk.behind(step + 2, range), completes && step == size - 2, channel);
  }
}

void ring_allgather(Builder& builder, const Group& group, Range range, int direction, uint8_t channel) {
  const Walk walk{group, direction};
  for (int64_t step = 0; step < static_cast<int64_t>(walk.size()) - 1; ++step) {
    builder.send(walk.next(), walk.behind(step, range), channel);
    builder.receive(walk.previous(), walk.behind(step + 1, range), channel);
  }
}

Cost ring_reduce_scatter_cost(double p, double n) { return {p - 1, p - 1, n * (p - 1) / p, 2 * n * (p - 1) / p}; }
Cost ring_allgather_cost(double p, double n) { return {p - 1, p - 1, n * (p - 1) / p, 0}; }

}  // namespace ccom
