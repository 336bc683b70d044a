// SPDX-License-Identifier: Apache-2.0
//
// Allreduce of short vectors over many hosts: in one round each rank of a host talks to a rank of another host, all
// NICs at once, so that hosts by the radix are joined per round and not by two.
//
//   9 hosts of 4 ranks, radices {3, 3}: hosts 3a + b; the first round joins those of one b, the second those of one a
//
//     host 0: ranks  0 1 2 3        1. every host sums inside; all of its ranks have the sum
//     host 1: ranks  0 1 2 3        2. rank j of the host with digit d and rank d of the host with digit j swap their
//     host 2: ranks  0 1 2 3           hosts' sums; rank d keeps its own. Now rank j has the sum of digit j.
//                                   3. every host sums what its first 3 ranks have; again for the next digit
//
// Ranks are numbered through the devices first here. The value of digit j is always at rank j, so every host computes
// the same expression. log_r H rounds of n bytes
// through each NIC and as many sums inside, of a few neighbour steps each: 640 hosts of 16 take 3 rounds (10 8 8)
// instead of 10. Each sum is counted once because the radices' product is the number of hosts; hosts beyond it give
// their sums to others first and get the result last (two more rounds). Roundings: those of the sums inside times one
// more than the rounds. Source: the idea of many objects per process of Huang et al., PiP-MColl, HPDC 2023 (arXiv
// 2305.10612); the exchange itself is ours.
#include <algorithm>

#include "algorithms/collectives.h"
#include "algorithms/cost.h"
#include "algorithms/local_sum.h"
#include "base/assert.h"

namespace ccom {
namespace {

// Where a rank is, and how hosts are numbered by digits.
class Position {
 public:
  Position(const Radix& shape, Rank rank) : shape_(shape) {
    for (const int radix : shape.radices) joined_ *= static_cast<uint32_t>(radix);
    const auto hosts = static_cast<uint32_t>(shape.hosts.size());
    CCOM_ASSERT(joined_ <= hosts && hosts <= 2 * joined_);
    for (host_ = 0; host_ < hosts; ++host_) {
      const auto found = std::ranges::find(shape.hosts[host_], rank);
      if (found == shape.hosts[host_].end()) continue;
      local_ = static_cast<uint32_t>(found - shape.hosts[host_].begin());
      break;
    }
    CCOM_ASSERT(host_ < hosts);
  }

  Group group() const { return {&shape_.hosts[host_], local_}; }
  uint32_t local() const { return local_; }
  Rank rank(uint32_t host, uint32_t local) const { return shape_.hosts[host][local]; }

  // Hosts from joined_ on are folded into those from 0 on.
  bool is_folded() const { return host_ >= joined_; }
  bool has_folded() const { return host_ + joined_ < shape_.hosts.size(); }
  Rank fold_partner() const { return rank(is_folded() ? host_ - joined_ : host_ + joined_, local_); }

  // `stride`: the product of the radices before.
  uint32_t digit(uint32_t stride, uint32_t radix) const { return host_ / stride % radix; }
  uint32_t host_with(uint32_t digit_there, uint32_t stride, uint32_t radix) const {
    return host_ + (digit_there - digit(stride, radix)) * stride;
  }

 private:
  const Radix& shape_;
  uint32_t joined_ = 1;
  uint32_t host_ = 0, local_ = 0;
};

void join_hosts(const Radix& shape, const Position& position, LocalSum& sum, Exchange& value) {
  uint32_t stride = 1;
  for (size_t round = 0; round < shape.radices.size(); ++round) {
    const auto radix = static_cast<uint32_t>(shape.radices[round]);
    CCOM_ASSERT(radix <= position.group().size());
    const uint32_t digit = position.digit(stride, radix);
    const uint32_t number = LocalSum::number_of(position.local(), shape.dims);
    if (number < radix && number != digit) {
      const Rank peer =
          position.rank(position.host_with(number, stride, radix), LocalSum::member_of(digit, shape.dims));
      value.give(peer);
      value.take(peer, false);
    }
    sum.add(radix, round + 1 == shape.radices.size());
    stride *= radix;
  }
}

}  // namespace

Plan mixed_radix_plan(const Call& call, const Radix& shape, const std::string& algorithm) {
  CCOM_ASSERT(call.collective == Collective::AllReduce || call.collective == Collective::Barrier);
  Builder builder(empty_plan({Collective::AllReduce, call.rank, call.nranks, -1, call.in_place}, algorithm));
  const Position position(shape, call.rank);
  const Group group = position.group();
  Exchange value(builder, 0, 1, 0);
  LocalSum sum(group, shape.dims, value);
  sum.add(group.size(), shape.hosts.size() == 1);
  if (position.is_folded()) {
    value.give(position.fold_partner());
    value.take(position.fold_partner(), true);
  } else {
    if (position.has_folded()) value.absorb(position.fold_partner(), shape.radices.empty());
    join_hosts(shape, position, sum, value);
    if (position.has_folded()) value.give(position.fold_partner());
  }
  builder.settle({0, 1}, call.nranks == 1);
  return std::move(builder).finish();
}

namespace {

// Factors of `product`, none above `most`, not increasing; as few as possible, then the largest as small as possible.
// `best` is replaced if they are fewer.
void factorize(int product, int most, std::vector<int>& so_far, std::vector<int>& best, size_t fewer_than) {
  if (product == 1) {
    const bool first = best.empty() || so_far.size() < best.size();
    if (so_far.size() < fewer_than && (first || (so_far.size() == best.size() && so_far < best))) best = so_far;
    return;
  }
  const size_t limit = best.empty() ? fewer_than - 1 : best.size();
  if (so_far.size() >= limit) return;
  for (int factor = std::min(product, most); factor >= 2; --factor) {
    if (product % factor != 0) continue;
    so_far.push_back(factor);
    factorize(product / factor, factor, so_far, best, fewer_than);
    so_far.pop_back();
  }
}

}  // namespace

std::vector<int> choose_radices(int hosts, int most) {
  constexpr size_t kFold = 2;
  constexpr size_t kMostFactors = 31;
  if (hosts < 2 || most < 2) return {};
  std::vector<int> so_far, exact;
  factorize(hosts, most, so_far, exact, kMostFactors);
  size_t least = exact.empty() ? kMostFactors : exact.size();
  std::vector<int> best = exact;
  for (int joined = hosts - 1; 2 * joined >= hosts && least > kFold + 1; --joined) {
    std::vector<int> found;
    factorize(joined, most, so_far, found, least - kFold);
    if (found.empty()) continue;
    least = found.size() + kFold;
    best = found;
  }
  return best;
}

RadixCost mixed_radix_cost(const Radix& shape, double n) {
  RadixCost cost;
  const double sums = 1 + static_cast<double>(shape.radices.size());
  for (size_t d = 0; d < shape.dims.size(); ++d) {
    const double size = shape.dims[d];
    const bool cores = d + 1 == shape.dims.size();
    if (size == 1) continue;
    if (cores) {
      cost.inside += {1, size - 1, n * (size - 1), n * size};
    } else if (size == 2 || size == 4) {
      cost.inside += {size / 2, size / 2, n * size / 2, n * size};
    } else {
      const double steps = static_cast<double>(shape.dims[d] / 2);
      cost.inside += {steps, size - 1, n * steps, n * size};
    }
  }
  cost.inside = {sums * cost.inside.steps, sums * cost.inside.posts, sums * cost.inside.bytes,
                 sums * cost.inside.reduced};
  int joined = 1;
  for (const int radix : shape.radices) joined *= radix;
  const bool folds = joined < static_cast<int>(shape.hosts.size());
  const double rounds = sums - 1 + (folds ? 2 : 0);
  cost.across = {rounds, rounds, n * rounds, folds ? 2 * n : 0};
  cost.roundings = static_cast<int>(sums) * LocalSum::roundings(shape.dims) + (folds ? 1 : 0);
  return cost;
}

}  // namespace ccom
