// SPDX-License-Identifier: Apache-2.0
//
// Recursive doubling allreduce: in round j everybody exchanges the whole range with the member whose index differs in
// bit j.
//
// lg p steps and n lg p bytes for p = 2^k; other p fold the excess members into neighbours first and unfold last (2
// more steps). Latency-optimal for one port: for short messages over a network, and, one dimension after another, on
// grids of any size. With Bine's partners (bine.cc), which are nearer in list order, far ones first: forwards, members
// would sum in different orders, as Swing's would (swing.cc). Both partners of an exchange compute the same sum, so all
// end with the same bits; lg p roundings. Source: Thakur, Rabenseifner & Gropp, Optimization of collective
// communication operations in MPICH, IJHPCA 19(1), 2005.
#include <bit>
#include <cmath>

#include "algorithms/bricks.h"
#include "algorithms/cost.h"
#include "algorithms/exchange.h"
#include "algorithms/streams.h"

namespace ccom {
void recursive_doubling_allreduce(Builder& builder, const Group& group, Range range, bool completes, uint8_t channel,
                                  Partners partners) {
  const uint32_t size = group.size();
  const uint32_t power = std::bit_floor(size);
  const uint32_t excess = size - power;  // members 2i+1 below 2 * excess fold into 2i
  if (group.me < 2 * excess && group.me % 2 == 1) {
    builder.send(group.rank(group.me - 1), range, channel);
    builder.receive(group.rank(group.me - 1), range, channel);
    return;
  }
  const bool folded = group.me < 2 * excess;
  if (folded) builder.receive_reduce(group.rank(group.me + 1), range, false, channel);
  const uint32_t label = folded ? group.me / 2 : group.me - excess;
  const auto member = [&](uint32_t other) { return group.rank(other < excess ? 2 * other : other + excess); };
  const auto rounds = static_cast<uint32_t>(std::countr_zero(power));
  const auto partner = [&](uint32_t round) {
    if (partners == Partners::OfBits) return label ^ (uint32_t{1} << round);
    return bine_partner(label, power, static_cast<int>(rounds - 1 - round));
  };
  builder.for_each_run(range, [&](uint32_t block, uint32_t count) {
    Exchange exchange(builder, block, count, channel);
    for (uint32_t j = 0; j < rounds; ++j) {
      exchange.combine(member(partner(j)), completes && j + 1 == rounds);
    }
  });
  if (folded) builder.send(group.rank(group.me + 1), range, channel);
}

void recursive_doubling_by_dimension(Builder& builder, const Group& group, const Level& level, Range range,
                                     bool completes, uint8_t channel) {
  const Grid grid(level.dims, group.me);
  const std::vector<TorusStream> streams =
      level.streams.empty() ? std::vector{default_streams(level.dims)[0]} : level.streams;
  for (size_t s = 0; s < streams.size(); ++s) {
    uint32_t members_left = group.size();
    for (const uint8_t d : streams[s].order) {
      if (grid.size(d) == 1) continue;
      members_left /= grid.size(d);
      const std::vector<Rank> line = grid.line(group, d);
      recursive_doubling_allreduce(builder, {&line, grid.coordinate(d)}, share_of(streams, s, range),
                                   completes && members_left == 1, static_cast<uint8_t>(channel + s));
    }
  }
}

Cost recursive_doubling_cost(double p, double n) {
  const double rounds = std::floor(std::log2(p));
  const double folding = std::exp2(rounds) < p ? 2 : 0;  // the members that fold wait for two messages more
  return {rounds + folding, rounds + folding, n * (rounds + folding), 2 * n * rounds + n * folding};
}

Cost recursive_doubling_cost(const Level& level, double n) {
  if (level.dims.empty()) return recursive_doubling_cost(static_cast<double>(level.groups[0].size()), n);
  Cost cost;
  for (const int size : level.dims) cost += recursive_doubling_cost(size, n);
  return cost;
}

}  // namespace ccom
