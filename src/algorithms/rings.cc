// SPDX-License-Identifier: Apache-2.0
//
// Rings along edge-disjoint Hamiltonian cycles of a torus, both ways round each at once: 2c streams for c cycles.
//
// p - 1 steps per half, neighbours only, (p-1)/p n/(2c) bytes per directed link. Two cycles fill a 4 x 4 torus, three a
// 4 x 4 x 4: the bound in bytes, at 15 and 63 steps where Swing takes 4 and 6. For comparison, and for fabrics that
// have cycles but no grid. Source of the cycles: cycles.h.
#include <algorithm>

#include "algorithms/bricks.h"
#include "algorithms/cost.h"
#include "algorithms/streams.h"
#include "base/assert.h"

namespace ccom {
namespace {

// One stream's ring as a member sees it.
struct Walk {
  std::vector<Rank> ranks;
  uint32_t me = 0;
  Range share;
  int direction = 1;
};

std::vector<Walk> walks_of(const Level& level, const Group& group, Range range) {
  const std::vector<TorusStream> streams = streams_of(level);
  std::vector<Walk> walks;
  for (size_t s = 0; s < streams.size(); ++s) {
    const std::vector<uint32_t>& cycle = level.cycles[s % level.cycles.size()];
    CCOM_ASSERT(cycle.size() == group.size());
    Walk& walk = walks.emplace_back();
    for (const uint32_t member : cycle) walk.ranks.push_back(group.rank(member));
    walk.me = static_cast<uint32_t>(std::ranges::find(cycle, group.me) - cycle.begin());
    walk.share = share_of(streams, s, range);
    walk.direction = streams[s].direction;
  }
  return walks;
}

}  // namespace

std::vector<Range> rings_owned(const Level& level, uint32_t me, Range range) {
  const std::vector<TorusStream> streams = streams_of(level);
  std::vector<Range> owned;
  for (size_t s = 0; s < streams.size(); ++s) {
    const std::vector<uint32_t>& cycle = level.cycles[s % level.cycles.size()];
    const auto place = static_cast<uint32_t>(std::ranges::find(cycle, me) - cycle.begin());
    owned.push_back(share_of(streams, s, range).part(place, static_cast<uint32_t>(cycle.size())));
  }
  return owned;
}

void rings_reduce_scatter(Builder& builder, const Group& group, const Level& level, Range range, bool completes,
                          uint8_t channel) {
  for (const Walk& walk : walks_of(level, group, range)) {
    ring_reduce_scatter(builder, {&walk.ranks, walk.me}, walk.share, completes, walk.direction, channel++);
  }
}

void rings_allgather(Builder& builder, const Group& group, const Level& level, Range range, uint8_t channel) {
  for (const Walk& walk : walks_of(level, group, range)) {
    ring_allgather(builder, {&walk.ranks, walk.me}, walk.share, walk.direction, channel++);
  }
}

Cost rings_reduce_scatter_cost(const Level& level, double n) {
  const double p = level.owners;
  const double streams = stream_count(level);
  return {p - 1, streams * (p - 1), n / streams * (p - 1) / p, 2 * n * (p - 1) / p};
}
Cost rings_allgather_cost(const Level& level, double n) {
  Cost cost = rings_reduce_scatter_cost(level, n);
  cost.reduced = 0;
  return cost;
}

}  // namespace ccom
