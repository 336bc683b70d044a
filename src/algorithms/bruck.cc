// SPDX-License-Identifier: Apache-2.0
//
// AllToAll in ceil(lg p) rounds, for short blocks and many ranks: a rank sends as many messages instead of p - 1, and
// about lg p / 2 times the bytes.
//
// The block for the rank i places further on travels along the bits of i: in the round of bit b all blocks whose i has
// it go b places on, in one message, for which they are packed. p = 4, where rank r has the blocks for r + 1, r + 2 and
// r + 3:
//
//   bit 1    those for r + 1 and r + 3 go to r + 1, where the first has arrived
//   bit 2    those for r + 2, and what has come for r + 2, go to r + 2
//
// A rank sends p/2 blocks in each round where p is a power of two: n lg p / 2 bytes for n bytes of all its blocks; each
// byte is copied twice in a round. In place: what a rank has in its buffer is packed before anything else comes there.
// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, Efficient algorithms for all-to-all communications in multiport
// message-passing systems, IEEE TPDS 8(11), 1997.
#include "algorithms/builder.h"
#include "algorithms/collectives.h"
#include "algorithms/cost.h"
#include "base/assert.h"

namespace ccom {
namespace {

// That go on in the round of a bit.
uint32_t blocks_in_round(uint32_t ranks, uint32_t bit) {
  uint32_t count = 0;
  for (uint32_t i = 1; i < ranks; ++i) count += (i & bit) != 0 ? 1 : 0;
  return count;
}

}  // namespace

Plan bruck_alltoall_plan(const Call& call) {
  CCOM_ASSERT(call.collective == Collective::AllToAll);
  const auto n = static_cast<uint32_t>(call.nranks);
  const auto self = static_cast<uint32_t>(call.rank);
  Builder builder(empty_plan(call, "bruck"));
  std::vector<Location> blocks;  // by how far they have to go: where this rank has them
  for (uint32_t i = 0; i < n; ++i) blocks.push_back({Buffer::Input, (self + i) % n});
  for (uint32_t bit = 1; bit < n; bit *= 2) {
    std::vector<Location> going_on;
    for (uint32_t i = 1; i < n; ++i) {
      if ((i & bit) != 0) going_on.push_back(blocks[i]);
    }
    const auto count = static_cast<uint32_t>(going_on.size());
    const Location packed{Buffer::Scratch, builder.new_scratch(count)};
    Location arrived{Buffer::Scratch, builder.new_scratch(count)};
    builder.pack(going_on, packed);
    builder.send_from(static_cast<Rank>((self + bit) % n), packed, 0, count);
    builder.receive_into(static_cast<Rank>((self + n - bit) % n), arrived, 0, count);
    for (uint32_t i = 1; i < n; ++i) {
      if ((i & bit) == 0) continue;
      blocks[i] = arrived;
      ++arrived.index;
    }
  }
  builder.copy({Buffer::Input, self}, {Buffer::Output, self}, self, 1);
  for (uint32_t i = 1; i < n; ++i) builder.copy(blocks[i], {Buffer::Output, (self + n - i) % n}, 0, 1);
  return std::move(builder).finish();
}

std::vector<Cost> bruck_alltoall_costs(double p, double n) {
  std::vector<Cost> rounds;
  const auto ranks = static_cast<uint32_t>(p);
  for (uint32_t bit = 1; bit < ranks; bit *= 2) rounds.push_back({1, 1, n / p * blocks_in_round(ranks, bit), 0});
  return rounds;
}

}  // namespace ccom
