// SPDX-License-Identifier: Apache-2.0
//
// Ring reduce-scatter and allgather: p - 1 steps each, one neighbour in, one out.
//
// Each member sends (p-1)/p of the range, which is optimal; the latency term grows with p, so it is for long messages,
// where one stream per link is what a network likes best, and for fabrics that are rings. Every further member is a
// further rounding. Source: Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69(2), 2009. Picture:
// tests/golden/ring_allreduce_4.txt
//
// Both ways at once (direction 0): a part goes to half of the members one way round and to the others the other way, or
// comes from them, in floor(p/2) steps with as many bytes on each link as two streams of half the data have. Of an even
// number of members the one opposite is reached by half of the part each way.
#include <algorithm>

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

// A ring walked both ways, one of them `way`. Steps are counted from 0.
class HalfWalk {
 public:
  HalfWalk(const Group& group, int way, Range range)
      : walk_{group, way}, range_(range), last_(static_cast<int64_t>(group.size()) / 2 - 1) {}

  // A gather passes on the part from `step` places behind.
  void send_up(Builder& builder, int64_t step, uint8_t channel) const {
    builder.send(walk_.next(), part(step, step == last_), channel);
  }
  void receive_up(Builder& builder, int64_t step, uint8_t channel) const {
    builder.receive(walk_.previous(), part(step + 1, step == last_), channel);
  }
  // A sum begins with the farthest member.
  void send_down(Builder& builder, int64_t step, uint8_t channel) const {
    builder.send(walk_.next(), part(step - last_ - 1, step == 0), channel);
  }
  void receive_down(Builder& builder, int64_t step, bool completes, uint8_t channel) const {
    builder.receive_reduce(walk_.previous(), part(step - last_, step == 0), completes && step == last_, channel);
  }

 private:
  // That is so far behind; of an even number of members half of it, if it is the opposite one's.
  Range part(int64_t behind, bool is_opposite) const {
    const Range whole = walk_.behind(behind, range_);
    if (walk_.size() % 2 == 1 || !is_opposite) return whole;
    return whole.part(walk_.direction > 0 ? 0 : 1, 2);
  }

  Walk walk_;
  Range range_;
  int64_t last_;
};

void reduce_scatter_both_ways(Builder& builder, const Group& group, Range range, bool completes, uint8_t channel) {
  const HalfWalk ahead(group, 1, range), back(group, -1, range);
  for (int64_t step = 0; step < static_cast<int64_t>(group.size()) / 2; ++step) {
    ahead.send_down(builder, step, channel);
    back.send_down(builder, step, channel);
    ahead.receive_down(builder, step, false, channel);
    back.receive_down(builder, step, completes, channel);
  }
}

void allgather_both_ways(Builder& builder, const Group& group, Range range, uint8_t channel) {
  const HalfWalk ahead(group, 1, range), back(group, -1, range);
  for (int64_t step = 0; step < static_cast<int64_t>(group.size()) / 2; ++step) {
    ahead.send_up(builder, step, channel);
    back.send_up(builder, step, channel);
    ahead.receive_up(builder, step, channel);
    back.receive_up(builder, step, channel);
  }
}

}  // namespace

void ring_reduce_scatter(Builder& builder, const Group& group, Range range, bool completes, int direction,
                         uint8_t channel) {
  if (direction == 0 && group.size() > 2) return reduce_scatter_both_ways(builder, group, range, completes, channel);
  if (direction == 0) direction = 1;
  const Walk walk{group, direction};
  const auto size = static_cast<int64_t>(walk.size());
  for (int64_t step = 0; step < size - 1; ++step) {
    builder.send(walk.next(), walk.behind(step + 1, range), channel);
    builder.receive_reduce(walk.previous(), walk.behind(step + 2, range), completes && step == size - 2, channel);
  }
}

void ring_allgather(Builder& builder, const Group& group, Range range, int direction, uint8_t channel) {
  if (direction == 0 && group.size() > 2) return allgather_both_ways(builder, group, range, channel);
  if (direction == 0) direction = 1;
  const Walk walk{group, direction};
  for (int64_t step = 0; step < static_cast<int64_t>(walk.size()) - 1; ++step) {
    builder.send(walk.next(), walk.behind(step, range), channel);
    builder.receive(walk.previous(), walk.behind(step + 1, range), channel);
  }
}

Cost ring_reduce_scatter_cost(double p, double n) { return {p - 1, p - 1, n * (p - 1) / p, 2 * n * (p - 1) / p}; }
Cost ring_allgather_cost(double p, double n) { return {p - 1, p - 1, n * (p - 1) / p, 0}; }

}  // namespace ccom
