// SPDX-License-Identifier: Apache-2.0
//
// Bucket algorithm on a torus of one to three dimensions with all ports: streams of the data, each with its own order
// of dimensions and direction.
//
//   4 x 4, default streams     A stream's reduce-scatter is a ring along its first dimension (parts of 1/a), then
//     0  rows, columns   +1    along the next (1/b), and so on; allgather runs back. The streams use all outgoing links
//     1  columns, rows   +1    of every member in every step, so that the bandwidth term meets the bound of a torus:
//     2  rows, columns   -1    n/4 (p-1)/p per link and direction and half on 4 x 4, n/6 (p-1)/p on 4 x 4 x 4.
//     3  columns, rows   -1
//
// The sum over the dimensions of (size - 1) steps per half, 2(p-1)/p n bytes per rank for an allreduce, neighbours
// only, any sizes. Dimensions of unequal size or speed want streams of unequal weight: balanced_streams. "Rows" means
// along a row.
//
// A stream of direction 0 takes each ring both ways at once (ring.cc): half of the steps, rounded up, with messages
// twice as long. Windows (staged.cc) hide less of a step's latency than of its bytes. Source: Barnett et al., Global
// combine on mesh architectures, JPDC 1995; Jain & Sabharwal, Optimal bucket algorithms for large MPI collectives on
// torus interconnects, ICS 2010.
//
// Rings: a stream's only ring is an edge-disjoint Hamiltonian cycle, 2c streams for c cycles both ways round. p - 1
// steps per half, neighbours only, (p-1)/p n/(2c) bytes per directed link. Two cycles fill a 4 x 4 torus, three a
// 4 x 4 x 4: the bound in bytes, at 15 and 63 steps where Swing takes 4 and 6; for long vectors, and for fabrics that
// have cycles but no grid. Source of the cycles: cycles.h.
#include <algorithm>

#include "algorithms/bricks.h"
#include "algorithms/cost.h"
#include "algorithms/streams.h"
#include "base/assert.h"

namespace ccom {
namespace {

const std::vector<uint32_t>& cycle_of(const Level& level, size_t s) { return level.cycles[s % level.cycles.size()]; }

// A ring on a stream's way down, as one member sees it.
struct Lap {
  Range held;  // when it begins
  uint32_t size, me;
  uint8_t dim = 0;  // Torus
  Range owned() const { return held.part(me, size); }
};

// Of stream s, which has `share` of the data. A dimension of one member takes no ring.
std::vector<Lap> laps_of(const Level& level, uint32_t me, const TorusStream& stream, size_t s, Range share) {
  if (level.pattern == Pattern::Rings) {
    const std::vector<uint32_t>& cycle = cycle_of(level, s);
    const auto place = static_cast<uint32_t>(std::ranges::find(cycle, me) - cycle.begin());
    return {{share, static_cast<uint32_t>(cycle.size()), place}};
  }
  CCOM_ASSERT(stream.order.size() == level.dims.size());
  const Grid grid(level.dims, me);
  std::vector<Lap> laps;
  for (const uint8_t d : stream.order) {
    if (level.dims[d] == 1) continue;
    laps.push_back({laps.empty() ? share : laps.back().owned(), grid.size(d), grid.coordinate(d), d});
  }
  return laps;
}

std::vector<Rank> line_of(const Level& level, const Group& group, size_t s, const Lap& lap) {
  if (level.pattern == Pattern::Torus) return Grid(level.dims, group.me).line(group, lap.dim);
  CCOM_ASSERT(lap.size == group.size());
  std::vector<Rank> line;
  for (const uint32_t member : cycle_of(level, s)) line.push_back(group.rank(member));
  return line;
}

}  // namespace

std::vector<Range> torus_owned(const Level& level, uint32_t me, Range range) {
  const std::vector<TorusStream> streams = streams_of(level);
  std::vector<Range> owned;
  for (size_t s = 0; s < streams.size(); ++s) {
    const Range share = share_of(streams, s, range);
    const std::vector<Lap> laps = laps_of(level, me, streams[s], s, share);
    owned.push_back(laps.empty() ? share : laps.back().owned());
  }
  return owned;
}

void torus_reduce_scatter(Builder& builder, const Group& group, const Level& level, Range range, bool completes,
                          uint8_t channel) {
  const std::vector<TorusStream> streams = streams_of(level);
  for (size_t s = 0; s < streams.size(); ++s) {
    const std::vector<Lap> laps = laps_of(level, group.me, streams[s], s, share_of(streams, s, range));
    for (const Lap& lap : laps) {
      const std::vector<Rank> line = line_of(level, group, s, lap);
      ring_reduce_scatter(builder, {&line, lap.me}, lap.held, completes && &lap == &laps.back(), streams[s].direction,
                          static_cast<uint8_t>(channel + s));
    }
  }
}

void torus_allgather(Builder& builder, const Group& group, const Level& level, Range range, uint8_t channel) {
  const std::vector<TorusStream> streams = streams_of(level);
  for (size_t s = 0; s < streams.size(); ++s) {
    std::vector<Lap> laps = laps_of(level, group.me, streams[s], s, share_of(streams, s, range));
    std::ranges::reverse(laps);
    for (const Lap& lap : laps) {
      const std::vector<Rank> line = line_of(level, group, s, lap);
      ring_allgather(builder, {&line, lap.me}, lap.held, streams[s].direction, static_cast<uint8_t>(channel + s));
    }
  }
}

Cost torus_reduce_scatter_cost(const Level& level, double n) {
  const std::vector<TorusStream> streams = streams_of(level);
  const auto joined = static_cast<double>(std::ranges::count(streams, 0, &TorusStream::direction));
  const double single = static_cast<double>(streams.size()) - joined;
  double p = 1, steps = 0, posts = 0;
  for (const int size : level.dims) {
    p *= size;
    steps += single > 0 ? size - 1 : size / 2;
    posts += single * (size - 1) + joined * (size > 2 ? size / 2 * 2 : size - 1);
  }
  return {steps, posts, n * std::ranges::max(torus_loads(level)), 2 * n * (p - 1) / p};
}
Cost torus_allgather_cost(const Level& level, double n) {
  Cost cost = torus_reduce_scatter_cost(level, n);
  cost.reduced = 0;
  return cost;
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
