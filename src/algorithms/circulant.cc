// SPDX-License-Identifier: Apache-2.0
//
// Reduce-scatter and allgather on a circulant graph: ceil(lg p) rounds and (p-1)/p n bytes for every p, not only powers
// of two.
//
// Let R[i] be the part for the member i places ahead. With s = p, halved (rounded up) each round, a member sends
// R[s..s') s places ahead and adds what comes from s places behind to R[0..s'-s); s' is the s before halving. After the
// last round R[0] is complete. Allgather runs the same rounds backwards. Optimal in rounds and bytes at once: the
// choice for medium sizes over a network. ceil(lg p) roundings. Source: Traff, Optimal, non-pipelined reduce-scatter
// and allreduce algorithms, 2024 (arXiv 2410.14234).
#include <algorithm>
#include <cmath>
#include <vector>

#include "algorithms/bricks.h"
#include "algorithms/cost.h"

namespace ccom {
namespace {

// R[first..last) in list order, as one or two ranges (it may wrap around).
template <typename Fn>
void for_each_range(const Group& group, Range range, uint32_t first, uint32_t last, Fn fn) {
  const uint32_t size = group.size();
  const uint32_t unit = range.count / size;
  const uint32_t start = (group.me + first) % size;
  const uint32_t head = std::min(last - first, size - start);
  fn(Range{range.first + start * unit, head * unit});
  if (head < last - first) fn(Range{range.first, (last - first - head) * unit});
}

// The values of s, from p down to 1.
std::vector<uint32_t> halvings(uint32_t p) {
  std::vector<uint32_t> s{p};
  while (s.back() > 1) s.push_back((s.back() + 1) / 2);
  return s;
}

}  // namespace

void circulant_reduce_scatter(Builder& builder, const Group& group, Range range, bool completes, uint8_t channel) {
  const uint32_t size = group.size();
  const std::vector<uint32_t> s = halvings(size);
  for (size_t round = 1; round < s.size(); ++round) {
    const uint32_t distance = s[round];
    for_each_range(group, range, distance, s[round - 1],
                   [&](Range part) { builder.send(group.rank(group.me + distance), part, channel); });
    // R[0] is complete in the last round; until then R[0..) gets one more contribution a round.
    for_each_range(group, range, 0, s[round - 1] - distance, [&](Range part) {
      builder.receive_reduce(group.rank(group.me + size - distance), part, completes && round + 1 == s.size(), channel);
    });
  }
}

void circulant_allgather(Builder& builder, const Group& group, Range range, uint8_t channel) {
  const uint32_t size = group.size();
  const std::vector<uint32_t> s = halvings(size);
  for (size_t round = s.size() - 1; round > 0; --round) {
    const uint32_t distance = s[round];
    for_each_range(group, range, 0, s[round - 1] - distance,
                   [&](Range part) { builder.send(group.rank(group.me + size - distance), part, channel); });
    for_each_range(group, range, distance, s[round - 1],
                   [&](Range part) { builder.receive(group.rank(group.me + distance), part, channel); });
  }
}

Cost circulant_reduce_scatter_cost(double p, double n) {
  const double rounds = std::ceil(std::log2(p));
  return {rounds, rounds, n * (p - 1) / p, 2 * n * (p - 1) / p};
}
Cost circulant_allgather_cost(double p, double n) {
  const double rounds = std::ceil(std::log2(p));
  return {rounds, rounds, n * (p - 1) / p, 0};
}

}  // namespace ccom
