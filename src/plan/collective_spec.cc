// SPDX-License-Identifier: Apache-2.0
#include "plan/collective_spec.h"

#include <algorithm>

namespace ccom {

CollectiveSpec::CollectiveSpec(Collective collective, int nranks, Rank root, uint32_t unit_blocks, uint64_t seed)
    : collective_(collective),
      ranks_(nranks),
      root_(root),
      unit_(unit_blocks),
      items_(items_of(collective, nranks) * unit_),
      seed_(mix(seed)) {}

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

uint64_t CollectiveSpec::word(Rank rank, uint64_t item) const {
  return mix(seed_ ^ mix(static_cast<uint64_t>(rank) << 40 ^ item)) % kPrime;
}

Value CollectiveSpec::contribution(Rank rank, uint64_t item) const { return leaf(word(rank, item), item, rank); }

uint64_t CollectiveSpec::expected(uint64_t item) {
  const auto [known, is_new] = expected_.try_emplace(item, 0);
  if (!is_new) return known->second;
  if (reduces()) {
    for (Rank rank = 0; rank < ranks_; ++rank) known->second = add_mod(known->second, word(rank, item));
  } else {
    known->second = word(source_of(collective_, ranks_, root_, item % items_ / unit_), item);
  }
  return known->second;
}

SumOrder CollectiveSpec::order_of(uint64_t item, const Value& value) {
  if (!reduces()) return SumOrder::Canonical;
  if (value.ranks != RankRun{0, ranks_ - 1}) return SumOrder::Any;
  const auto [known, is_new] = canonical_.try_emplace(item, 0);
  if (is_new) {
    Value all = contribution(0, item);
    for (Rank rank = 1; rank < ranks_; ++rank) all = combine(all, contribution(rank, item));
    if (ranks_ > 1) round_once(all, static_cast<size_t>(ranks_));
    known->second = all.expression;
  }
  return value.expression == known->second ? SumOrder::Canonical : SumOrder::Ranks;
}

std::string CollectiveSpec::what_is_wrong(uint64_t item, uint64_t sum) {
  const uint64_t whole = expected(item);
  for (Rank rank = 0; rank < ranks_; ++rank) {
    if (add_mod(sum, word(rank, item)) == whole) return "lacks the contribution of rank " + std::to_string(rank);
    if (add_mod(whole, word(rank, item)) == sum) {
      return "holds the contribution of rank " + std::to_string(rank) + " twice";
    }
  }
  constexpr int kMostRanks = 16;  // whose subsets can all be tried
  for (uint64_t some = 1; ranks_ <= kMostRanks && some < uint64_t{1} << ranks_; ++some) {
    uint64_t with = sum;
    std::string names;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      if ((some >> rank & 1) == 0) continue;
      with = add_mod(with, word(rank, item));
      names += " " + std::to_string(rank);
    }
    if (with == whole) return "lacks the contributions of ranks" + names;
  }
  return "lacks a contribution, or holds one twice or a wrong one";
}

}  // namespace ccom
