// SPDX-License-Identifier: Apache-2.0
#include "plan/collective_spec.h"

#include <algorithm>

namespace ccom {

CollectiveSpec::CollectiveSpec(const Plan& any, uint64_t seed, bool is_rotated)
    : collective_(any.collective),
      ranks_(static_cast<uint64_t>(any.nranks)),
      unit_(any.blocks_per_unit),
      root_(static_cast<uint64_t>(any.root)),
      items_(items_of(any.collective, any.nranks) * unit_),
      seed_(mix(seed)),
      turn_(is_rotated ? items_ / ranks_ : 0) {}

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
  const uint32_t unit = block / plan.blocks_per_unit;
  return ccom::input_item(collective_, plan.nranks, plan.rank, unit) * unit_ + block % plan.blocks_per_unit;
}

uint64_t CollectiveSpec::output_item(const Plan& plan, uint32_t block) const {
  const uint32_t unit = block / plan.blocks_per_unit;
  return ccom::output_item(collective_, plan.nranks, plan.rank, unit) * unit_ + block % plan.blocks_per_unit;
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
  if (reduces()) {
    for (uint64_t r = 0; r < ranks_; ++r) known->second = add_mod(known->second, word(r, item));
  } else {
    const auto root = static_cast<Rank>(root_);
    const Rank source = source_of(collective_, static_cast<int>(ranks_), root, item / unit_);
    known->second = word(static_cast<uint64_t>(source), item);
  }
  return known->second;
}

std::string CollectiveSpec::what_is_wrong(uint64_t item, uint64_t sum) {
  const uint64_t whole = expected(item);
  for (uint64_t rank = 0; rank < ranks_ && turn_ == 0; ++rank) {
    if (add_mod(sum, word(rank, item)) == whole) return "lacks the contribution of rank " + std::to_string(rank);
    if (add_mod(whole, word(rank, item)) == sum) {
      return "holds the contribution of rank " + std::to_string(rank) + " twice";
    }
  }
  constexpr uint64_t kMostRanks = 16;  // whose subsets can all be tried
  for (uint64_t some = 1; turn_ == 0 && ranks_ <= kMostRanks && some < uint64_t{1} << ranks_; ++some) {
    uint64_t with = sum;
    std::string names;
    for (uint64_t rank = 0; rank < ranks_; ++rank) {
      if ((some >> rank & 1) == 0) continue;
      with = add_mod(with, word(rank, item));
      names += " " + std::to_string(rank);
    }
    if (with == whole) return "lacks the contributions of ranks" + names;
  }
  return "lacks a contribution, or holds one twice or a wrong one";
}

uint64_t CollectiveSpec::seen_from(uint64_t item, uint64_t distance) const {
  return turn_ == 0 ? item : (item + items_ - distance % ranks_ * turn_) % items_;
}

}  // namespace ccom
