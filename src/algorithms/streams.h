// SPDX-License-Identifier: Apache-2.0
//
// Streams: how the data is shared out over the links of a torus, and what each link carries then.
#pragma once

#include <vector>

#include "algorithms/builder.h"
#include "algorithms/shape.h"

namespace ccom {

// A member's place on a grid, the last dimension running fastest.
class Grid {
 public:
  Grid(const std::vector<int>& dims, uint32_t me) : dims_(dims), me_(me) {}
  uint32_t size(uint8_t dim) const { return static_cast<uint32_t>(dims_[dim]); }
  uint32_t coordinate(uint8_t dim) const { return me_ / stride(dim) % size(dim); }
  // The member whose coordinate in `dim` is `coordinate`, the others being mine.
  uint32_t at(uint8_t dim, uint32_t coordinate_there) const {
    return me_ + (coordinate_there - coordinate(dim)) * stride(dim);
  }
  // The ranks that differ from me in `dim` only.
  std::vector<Rank> line(const Group& group, uint8_t dim) const;

 private:
  uint32_t stride(uint8_t dim) const;
  const std::vector<int>& dims_;
  uint32_t me_;
};

// Every rotation of the dimensions, both ways round, equal shares: uses all links of a torus with equal dimensions
// evenly. For two dimensions {rows first, columns first} x {+1, -1}.
std::vector<TorusStream> default_streams(const std::vector<int>& dims);

// Streams for Torus whose weights make every link carry what its bandwidth allows, so that the busiest one is as little
// busy as possible; `bytes_per_second` is that of one link and direction of each dimension. Weights are small (their
// sum is at most 32), so shares are right to within a few per mille of the busiest load. Both directions get the same.
// With Swing: rotations of the dimensions only, whose dims must be powers of two.
std::vector<TorusStream> balanced_streams(const std::vector<int>& dims, const std::vector<double>& bytes_per_second,
                                          Pattern pattern = Pattern::Torus);

// The same for Torus, pairs of streams that go opposite ways joined into one that goes both ways at once: as many bytes
// on each link in half of the steps, and half of the channels.
std::vector<TorusStream> joined_streams(const std::vector<TorusStream>& both_ways);

// The streams that a level of pattern Torus, Swing or SwingLatency has; one for each direction of each cycle of Rings;
// otherwise none.
std::vector<TorusStream> streams_of(const Level& level);
// The same counted, with 1 for patterns without streams, and the sum of their weights.
uint32_t stream_count(const Level& level);
// Rings of Torus that a stream takes one after another; 1 for other patterns.
size_t torus_laps(const Level& level);
uint32_t weight_sum(const std::vector<TorusStream>& streams);
// Stream s's share of a range. range.count is a multiple of the sum of weights.
Range share_of(const std::vector<TorusStream>& streams, size_t s, Range range);

// For each dimension: which fraction of a group's data the busiest directed link of that dimension carries in a
// reduce-scatter (an allgather carries as much) or in SwingLatency, messages being routed the short way along their
// dimension. Swing's streams are taken to come in pairs of both directions. A dimension of two has one link, whichever
// way round.
std::vector<double> torus_loads(const Level& level);

// How long a reduce-scatter (`down`) or an allgather of one byte per group takes, in seconds, without latencies, by the
// busiest links' `bytes_per_second` of each dimension: streams start together, and those that are on the same links
// share them in proportion to their messages. At least the busiest link's load; more where streams do not keep in step.
double streams_time(const Level& level, const std::vector<double>& bytes_per_second, bool down);

}  // namespace ccom
