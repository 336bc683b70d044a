// SPDX-License-Identifier: Apache-2.0
//
// Swing: halving and doubling whose partners are near on a torus, with all ports.
//
// In round m of a dimension of 2^k members an even member's partner is r(m) = (1 - (-2)^(m+1)) / 3 = 1, -1, 3, -5, 11
// ... places ahead, an odd member's as many behind. A stream takes the dimensions in turn, in its order, and its
// direction mirrors all distances; {rotations of the dimensions} x {+1, -1} give every port its own stream in every
// round. Reduce-scatter: lg p rounds, each partner keeps half of what both have, (p-1)/p n bytes per rank; allgather
// the same backwards. On dimensions of 4 and 2 every partner is a neighbour: 4 x 4 takes 8 single-hop steps for an
// allreduce with all 64 links busy in every one, and exactly the bound in bytes. On 8 x 8 messages of 3 hops make it
// 1.095 times the bound; bucket (torus.cc) overtakes there for long vectors. The latency form exchanges everything in
// lg p steps: for short vectors.
//
// Which half a member keeps: those that the remaining rounds can reach. They are of one class: the members whose even
// one of {member, partner in round m} has the same remainder modulo 2^(m+1) have the same blocks before round m.
// Hence the latency form, where everybody adds what such a class has, runs the rounds backwards: forwards, on rings of
// 8 and more, members would sum in different orders and end with different bits.
//
// Source: De Sensi et al., Swing: Short-cutting Rings for Higher Bandwidth Allreduce, NSDI 2024 (arXiv 2401.09356).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "algorithms/bricks.h"
#include "algorithms/cost.h"
#include "algorithms/exchange.h"
#include "algorithms/streams.h"
#include "base/assert.h"

namespace ccom {
namespace {

struct Round {
  uint8_t dim;
  int number;  // within the dimension
};

// The dimensions in turn, each as long as it has rounds.
std::vector<Round> rounds_of(const TorusStream& stream, const std::vector<int>& dims) {
  std::vector<Round> rounds;
  for (int number = 0; 2 << number <= *std::ranges::max_element(dims); ++number) {
    for (const uint8_t d : stream.order) {
      CCOM_ASSERT(std::has_single_bit(static_cast<uint32_t>(dims[d])));
      if (2 << number <= dims[d]) rounds.push_back({d, number});
    }
  }
  return rounds;
}

int distance(int round) { return (1 - static_cast<int>(std::pow(-2, round + 1))) / 3; }

// `coordinate`'s partner in a ring of `size`, a power of two.
uint32_t partner_in_ring(uint32_t coordinate, uint32_t size, int round, int direction) {
  const int ahead = direction * distance(round) * (coordinate % 2 == 0 ? 1 : -1);
  return (coordinate + static_cast<uint32_t>(ahead)) % size;
}

// Which half of its class a coordinate keeps in a round.
uint32_t half(uint32_t coordinate, uint32_t size, int round, int direction) {
  const int next = round + 1;
  if (2U << round == size) return coordinate % 2;  // the last round: its class is itself and its partner
  const uint32_t even = coordinate % 2 == 0 ? coordinate : partner_in_ring(coordinate, size, next, direction);
  return even >> next & 1;
}

uint32_t partner_of(uint32_t member, const std::vector<int>& dims, Round round, int direction) {
  const Grid grid(dims, member);
  return grid.at(round.dim, partner_in_ring(grid.coordinate(round.dim), grid.size(round.dim), round.number, direction));
}

// A member's place in the order in which every round's halves are runs.
uint32_t place_of(uint32_t member, const std::vector<int>& dims, const TorusStream& stream) {
  const Grid grid(dims, member);
  uint32_t place = 0;
  for (const Round& round : rounds_of(stream, dims)) {
    place = place << 1 | half(grid.coordinate(round.dim), grid.size(round.dim), round.number, stream.direction);
  }
  return place;
}

// One stream's exchange in one round.
struct Halving {
  uint32_t partner;
  Range kept, sent;  // on the way down; on the way up the other way about
};

std::vector<Halving> halvings_of(const Group& group, const std::vector<int>& dims, const TorusStream& stream,
                                 Range share) {
  std::vector<Halving> halvings;
  const uint32_t place = place_of(group.me, dims, stream);
  uint32_t parts = 2;
  for (const Round& round : rounds_of(stream, dims)) {
    const uint32_t partner = partner_of(group.me, dims, round, stream.direction);
    const uint32_t mine = place / (group.size() / parts);
    CCOM_ASSERT((place_of(partner, dims, stream) / (group.size() / parts) ^ mine) == 1);
    halvings.push_back({partner, share.part(mine, parts), share.part(mine ^ 1, parts)});
    parts *= 2;
  }
  return halvings;
}

}  // namespace

uint32_t swing_partner(uint32_t member, uint32_t members, int round) {
  return partner_in_ring(member, members, round, 1);
}

std::vector<Range> swing_owned(const Level& level, uint32_t me, Range range) {
  const std::vector<TorusStream> streams = streams_of(level);
  const auto size = static_cast<uint32_t>(level.owners);
  std::vector<Range> owned;
  for (size_t s = 0; s < streams.size(); ++s) {
    owned.push_back(share_of(streams, s, range).part(place_of(me, level.dims, streams[s]), size));
  }
  return owned;
}

void swing_reduce_scatter(Builder& builder, const Group& group, const Level& level, Range range, bool completes,
                          uint8_t channel) {
  const std::vector<TorusStream> streams = streams_of(level);
  for (size_t s = 0; s < streams.size(); ++s) {
    const auto lane = static_cast<uint8_t>(channel + s);
    for (const Halving& halving : halvings_of(group, level.dims, streams[s], share_of(streams, s, range))) {
      const Rank partner = group.rank(halving.partner);
      const bool last = halving.kept.count * group.size() == share_of(streams, s, range).count;
      builder.send(partner, halving.sent, lane);
      builder.receive_reduce(partner, halving.kept, completes && last, lane);
    }
  }
}

void swing_allgather(Builder& builder, const Group& group, const Level& level, Range range, uint8_t channel) {
  const std::vector<TorusStream> streams = streams_of(level);
  for (size_t s = 0; s < streams.size(); ++s) {
    const auto lane = static_cast<uint8_t>(channel + s);
    std::vector<Halving> halvings = halvings_of(group, level.dims, streams[s], share_of(streams, s, range));
    std::ranges::reverse(halvings);
    for (const Halving& halving : halvings) {
      const Rank partner = group.rank(halving.partner);
      builder.send(partner, halving.kept, lane);
      builder.receive(partner, halving.sent, lane);
    }
  }
}

void swing_allreduce(Builder& builder, const Group& group, const Level& level, Range range, bool completes,
                     uint8_t channel) {
  const std::vector<TorusStream> streams = streams_of(level);
  for (size_t s = 0; s < streams.size(); ++s) {
    std::vector<Round> rounds = rounds_of(streams[s], level.dims);
    std::ranges::reverse(rounds);  // far partners first: see above
    builder.for_each_run(share_of(streams, s, range), [&](uint32_t block, uint32_t count) {
      Exchange exchange(builder, block, count, static_cast<uint8_t>(channel + s));
      for (size_t r = 0; r < rounds.size(); ++r) {
        const uint32_t partner = partner_of(group.me, level.dims, rounds[r], streams[s].direction);
        exchange.combine(group.rank(partner), completes && r + 1 == rounds.size());
      }
    });
  }
}

Cost swing_reduce_scatter_cost(const Level& level, double n) {
  const double p = level.owners;
  const double rounds = std::log2(p);
  return {rounds, stream_count(level) * rounds, n * std::ranges::max(torus_loads(level)), 2 * n * (p - 1) / p};
}
Cost swing_allgather_cost(const Level& level, double n) {
  Cost cost = swing_reduce_scatter_cost(level, n);
  cost.reduced = 0;
  return cost;
}
Cost swing_latency_cost(const Level& level, double n) {
  const double rounds = std::log2(level.owners);
  return {rounds, stream_count(level) * rounds, n * std::ranges::max(torus_loads(level)), 2 * n * rounds};
}

double swing_hops(const std::vector<int>& dims) {
  double hops = 0;
  for (const int size : dims) {
    for (int round = 0; 2 << round <= size; ++round) hops += std::abs(distance(round));
  }
  return hops;
}

}  // namespace ccom
