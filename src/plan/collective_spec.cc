// SPDX-License-Identifier: Apache-2.0
#include "plan/collective_spec.h"

#include <algorithm>

namespace ccom {

namespace {

uint64_t items_of(Collective collective, uint64_t ranks, uint64_t unit) {
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Reduce:
    case Collective::Broadcast: return unit;
    case Collective::AllToAll: return ranks * ranks * unit;
    default: return ranks * unit;
  }
}

}  // namespace

CollectiveSpec::CollectiveSpec(const Plan& any, uint64_t seed, bool is_rotated)
    : collective_(any.collective),
      ranks_(static_cast<uint64_t>(any.nranks)),
      unit_(any.blocks_per_unit),
      root_(static_cast<uint64_t>(any.root)),
      items_(items_of(any.collective, ranks_, unit_)),
      seed_(mix(seed)),
      turn_(is_rotated ? items_ / ranks_ : 0) {}

bool CollectiveSpec::reduces() const {
  return collective_ == Collective::AllReduce || collective_ == Collective::Reduce ||
         collective_ == Collective::ReduceScatter;
}

void CollectiveSpec::choose(uint32_t count, std::mt19937_64& random) {
  if (count == 0 || count >= items_) return;
  followed_.assign(items_, false);
  chosen_ = count;
  for (uint32_t left = count; left > 0;) {
    const uint64_t item = random() % items_;
    if (followed_[item]) continue;
    followed_[item] = true;
    --left;
  }
}

uint64_t CollectiveSpec::input_item(const Plan& plan, uint32_t block) const {
  const auto rank = static_cast<uint64_t>(plan.rank);
  switch (collective_) {
    case Collective::Barrier:
    case Collective::AllGather:
    case Collective::Gather: return rank * unit_ + block;
    case Collective::AllToAll: return rank * ranks_ * unit_ + block;
    default: return block;
  }
}

uint64_t CollectiveSpec::output_item(const Plan& plan, uint32_t block) const {
  const auto rank = static_cast<uint64_t>(plan.rank);
  switch (collective_) {
    case Collective::ReduceScatter:
    case Collective::Scatter: return rank * unit_ + block;
    case Collective::AllToAll: return (block / unit_ * ranks_ + rank) * unit_ + block % unit_;
    default: return block;
  }
}

// Rotated, a contribution's name must not depend on the view: how far the rank lies ahead of its item, and the item
// within a turn.
uint64_t CollectiveSpec::word(uint64_t rank, uint64_t item) const {
  const uint64_t who = turn_ == 0 ? rank : (rank + ranks_ - item / turn_) % ranks_;
  const uint64_t what = turn_ == 0 ? item : item % turn_;
  return mix(seed_ ^ mix(who << 40 ^ what)) % kPrime;
}

Value CollectiveSpec::input(const Plan& plan, uint32_t block) const {
  const uint64_t item = input_item(plan, block);
  return leaf(word(static_cast<uint64_t>(plan.rank), item), item);
}

uint64_t CollectiveSpec::expected(uint64_t item) {
  const auto [known, is_new] = expected_.try_emplace(item, 0);
  if (!is_new) return known->second;
  switch (collective_) {
    case Collective::AllReduce:
    case Collective::Reduce:
    case Collective::ReduceScatter:
      for (uint64_t r = 0; r < ranks_; ++r) known->second = add_mod(known->second, word(r, item));
      break;
    case Collective::AllToAll: known->second = word(item / (ranks_ * unit_), item); break;
    case Collective::Broadcast:
    case Collective::Scatter: known->second = word(root_, item); break;
    default: known->second = word(item / unit_, item);
  }
  return known->second;
}

uint64_t CollectiveSpec::seen_from(uint64_t item, uint64_t distance) const {
  return turn_ == 0 ? item : (item + items_ - distance % ranks_ * turn_) % items_;
}

}  // namespace ccom
