// SPDX-License-Identifier: Apache-2.0
//
// Bine: binomial trees and butterflies whose distances have alternating signs, as the digits of numbers to the base -2
// have, so that messages go about two thirds as far along the list of ranks as those of binomial ones. Where neighbours
// in the list share a switch, fewer messages cross what joins the switches.
//
// Tree. A run of ranks is halved; its root is about a third from one end, and the root of the other half as far from
// the other end. So every subtree is a run, and depth is ceil(lg n) for any n. For n = 2^k these are the trees of the
// paper (a rank's parent has the run of equal low digits of its number to the base -2 turned over); for other n the
// halves are as equal as can be, which is ours.
//
//   8 ranks, root 0    -2 -1  0  1  2  3  4  5      halves -2..1 and 2..5, roots 0 and 3: a distance of 3
//                       `--------|     |--------'    then 0 and -1, 3 and 4; then neighbours
//
// Butterfly. In round m an even member's partner is (1 - (-2)^(m+1)) / 3 = 1, -1, 3, -5, 11 ... places ahead, an odd
// member's as many behind: Swing's partners (swing.cc) on one ring, with one stream. Near partners exchange half of
// the data, far ones little of it. lg p rounds and (p-1)/p n bytes for each half of an allreduce, p a power of two; as
// many exchanges of everything for short vectors, any p (excess members fold as in recursive doubling).
//
// AllToAll. lg p rounds along the same partners: a block goes where the part of the butterfly is that its receiver
// will be in. p/2 blocks a round, n lg p / 2 bytes, packed as Bruck's are.
//
// Source: De Sensi et al., Bine Trees: Enhancing Collective Operations by Optimizing Communication Locality, SC 2025
// (arXiv 2508.17311).
#include <algorithm>
#include <bit>

#include "algorithms/bricks.h"
#include "algorithms/collectives.h"
#include "algorithms/cost.h"
#include "base/assert.h"

namespace ccom {
namespace {

Level as_swing(uint32_t members) {
  const auto size = static_cast<int>(members);
  return {.pattern = Pattern::Swing, .owners = size, .dims = {size}, .streams = {{.order = {0}}}};
}

// Sets the parents of a run's places but its root's, which it returns.
class Halves {
 public:
  explicit Halves(uint32_t count) : parent_(count, -1) { root_ = hang(0, count, std::bit_width(count - 1), false); }
  uint32_t root() const { return root_; }
  int parent(uint32_t place) const { return parent_[place]; }

 private:
  // On each level the root is in the other half than on the one below: so it is about a third from an end.
  uint32_t hang(uint32_t first, uint32_t count, int level, bool mirrored) {
    if (count == 1) return first;
    const uint32_t far = count / 2, near = count - far;
    const bool is_left = (level % 2 == 1) != mirrored;
    const uint32_t root = hang(is_left ? first : first + far, near, level - 1, mirrored);
    const uint32_t other = hang(is_left ? first + near : first, far, level - 1, !mirrored);
    parent_[other] = static_cast<int>(root);
    return root;
  }

  std::vector<int> parent_;
  uint32_t root_ = 0;
};

}  // namespace

Tree bine_tree(const std::vector<Rank>& order, Rank root) {
  const auto size = static_cast<uint32_t>(order.size());
  const auto at = static_cast<uint32_t>(std::ranges::find(order, root) - order.begin());
  CCOM_ASSERT(at < size);
  const Halves halves(size);
  const auto rank = [&](uint32_t place) { return order[(at + size + place - halves.root()) % size]; };
  Tree tree{root, std::vector<Rank>(size, -1), 1};
  for (uint32_t place = 0; place < size; ++place) {
    if (halves.parent(place) < 0) continue;
    tree.parent[static_cast<size_t>(rank(place))] = rank(static_cast<uint32_t>(halves.parent(place)));
  }
  return tree;
}

uint32_t bine_partner(uint32_t member, uint32_t members, int round) { return swing_partner(member, members, round); }

Range bine_owned(uint32_t me, uint32_t members, Range range) { return swing_owned(as_swing(members), me, range)[0]; }

void bine_reduce_scatter(Builder& builder, const Group& group, Range range, bool completes, uint8_t channel) {
  swing_reduce_scatter(builder, group, as_swing(group.size()), range, completes, channel);
}

void bine_allgather(Builder& builder, const Group& group, Range range, uint8_t channel) {
  swing_allgather(builder, group, as_swing(group.size()), range, channel);
}

Cost bine_reduce_scatter_cost(double p, double n) {
  const double rounds = std::bit_width(static_cast<uint32_t>(p)) - 1;
  return {rounds, rounds, n * (p - 1) / p, 2 * n * (p - 1) / p};
}
Cost bine_allgather_cost(double p, double n) {
  Cost cost = bine_reduce_scatter_cost(p, n);
  cost.reduced = 0;
  return cost;
}

// ---- AllToAll -------------------------------------------------------------------------------------------------------

namespace {

// Whose blocks a rank has after `rounds` rounds, in the order in which it keeps them.
std::vector<uint32_t> senders_of(uint32_t rank, uint32_t ranks, int rounds) {
  if (rounds == 0) return {rank};
  std::vector<uint32_t> senders = senders_of(rank, ranks, rounds - 1);
  const std::vector<uint32_t> others = senders_of(bine_partner(rank, ranks, rounds - 1), ranks, rounds - 1);
  senders.insert(senders.end(), others.begin(), others.end());
  return senders;
}

}  // namespace

// `at`: where blocks are, receiver by receiver in the order of their places, which halves as the rounds do, and for
// each of them sender by sender.
Plan bine_alltoall_plan(const Call& call) {
  CCOM_ASSERT(call.collective == Collective::AllToAll);
  const auto n = static_cast<uint32_t>(call.nranks);
  const auto self = static_cast<uint32_t>(call.rank);
  CCOM_ASSERT(std::has_single_bit(n));
  Builder builder(empty_plan(call, "bine"));
  std::vector<Location> at(n);
  for (uint32_t rank = 0; rank < n; ++rank) at[bine_owned(rank, n, {0, n}).first] = {Buffer::Input, rank};
  const uint32_t place = bine_owned(self, n, {0, n}).first;
  const int rounds = std::countr_zero(n);
  const uint32_t half = n / 2;
  for (int round = 0; round < rounds; ++round) {
    const auto partner = static_cast<Rank>(bine_partner(self, n, round));
    const bool keeps_upper = (place & (half >> round)) != 0;
    const std::span<const Location> lower = std::span(at).first(half), upper = std::span(at).last(half);
    const Location packed{Buffer::Scratch, builder.new_scratch(half)};
    const Location arrived{Buffer::Scratch, builder.new_scratch(half)};
    builder.pack(keeps_upper ? lower : upper, packed);
    builder.send_from(partner, packed, 0, half);
    builder.receive_into(partner, arrived, 0, half);
    const std::span<const Location> kept = keeps_upper ? upper : lower;
    const uint32_t senders = 1U << round;
    std::vector<Location> next;
    next.reserve(n);
    for (uint32_t first = 0; first < half; first += senders) {
      for (uint32_t i = 0; i < senders; ++i) next.push_back(kept[first + i]);
      for (uint32_t i = 0; i < senders; ++i) next.push_back(arrived.at(first + i));
    }
    at = std::move(next);
  }
  const std::vector<uint32_t> senders = senders_of(self, n, rounds);
  for (uint32_t i = 0; i < n; ++i) builder.copy(at[i], {Buffer::Output, senders[i]}, 0, 1);
  return std::move(builder).finish();
}

}  // namespace ccom
