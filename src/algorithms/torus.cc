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
// along a row. Source: Barnett et al., Global combine on mesh architectures, JPDC 1995; Jain & Sabharwal, Optimal
// bucket algorithms for large MPI collectives on torus interconnects, ICS 2010.
#include <algorithm>

#include "algorithms/bricks.h"
#include "algorithms/cost.h"
#include "algorithms/streams.h"
#include "base/assert.h"

namespace ccom {
namespace {

// The dimensions of a stream's order in which there is somebody else.
std::vector<uint8_t> lively(const TorusStream& stream, const std::vector<int>& dims) {
  CCOM_ASSERT(stream.order.size() == dims.size());
  std::vector<uint8_t> order;
  std::ranges::copy_if(stream.order, std::back_inserter(order), [&](uint8_t d) { return dims[d] > 1; });
  return order;
}

// What a member holds before the first dimension, the second, ..., and after the last.
std::vector<Range> narrowing(const std::vector<uint8_t>& order, const Grid& grid, Range share) {
  std::vector<Range> held{share};
  for (const uint8_t d : order) held.push_back(held.back().part(grid.coordinate(d), grid.size(d)));
  return held;
}

}  // namespace

std::vector<Range> torus_owned(const Level& level, uint32_t me, Range range) {
  const std::vector<TorusStream> streams = streams_of(level);
  std::vector<Range> owned;
  for (size_t s = 0; s < streams.size(); ++s) {
    owned.push_back(
        narrowing(lively(streams[s], level.dims), Grid(level.dims, me), share_of(streams, s, range)).back());
  }
  return owned;
}

void torus_reduce_scatter(Builder& builder, const Group& group, const Level& level, Range range, bool completes,
                          uint8_t channel) {
  const Grid grid(level.dims, group.me);
  const std::vector<TorusStream> streams = streams_of(level);
  for (size_t s = 0; s < streams.size(); ++s) {
    const std::vector<uint8_t> order = lively(streams[s], level.dims);
    const std::vector<Range> held = narrowing(order, grid, share_of(streams, s, range));
    for (size_t i = 0; i < order.size(); ++i) {
      const std::vector<Rank> line = grid.line(group, order[i]);
      ring_reduce_scatter(builder, {&line, grid.coordinate(order[i])}, held[i], completes && i + 1 == order.size(),
                          streams[s].direction, static_cast<uint8_t>(channel + s));
    }
  }
}

void torus_allgather(Builder& builder, const Group& group, const Level& level, Range range, uint8_t channel) {
  const Grid grid(level.dims, group.me);
  const std::vector<TorusStream> streams = streams_of(level);
  for (size_t s = 0; s < streams.size(); ++s) {
    const std::vector<uint8_t> order = lively(streams[s], level.dims);
    const std::vector<Range> held = narrowing(order, grid, share_of(streams, s, range));
    for (size_t i = order.size(); i-- > 0;) {
      const std::vector<Rank> line = grid.line(group, order[i]);
      ring_allgather(builder, {&line, grid.coordinate(order[i])}, held[i], streams[s].direction,
                     static_cast<uint8_t>(channel + s));
    }
  }
}

Cost torus_reduce_scatter_cost(const Level& level, double n) {
  double p = 1, steps = 0;
  for (const int size : level.dims) {
    p *= size;
    steps += size - 1;
  }
  return {steps, stream_count(level) * steps, n * std::ranges::max(torus_loads(level)), 2 * n * (p - 1) / p};
}
Cost torus_allgather_cost(const Level& level, double n) {
  Cost cost = torus_reduce_scatter_cost(level, n);
  cost.reduced = 0;
  return cost;
}

}  // namespace ccom
