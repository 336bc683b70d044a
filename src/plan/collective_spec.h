// SPDX-License-Identifier: Apache-2.0
//
// What a collective's blocks mean, symbolically: what each rank contributes, and what its output must hold.
//
// Items. A collective's data are numbered: the blocks of the vector (allreduce, broadcast, reduce), of all units
// (reduce-scatter, allgather, gather, scatter) or of all pairs of ranks (all-to-all). An input block contributes to
// exactly one item, an output block holds exactly one, so items never mix and any of them can be followed alone.
#pragma once

#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/plan.h"
#include "plan/value.h"

namespace ccom {

class CollectiveSpec {
 public:
  // unit_blocks: into which a unit is cut.
  CollectiveSpec(Collective collective, int nranks, Rank root, uint32_t unit_blocks, uint64_t seed);

  uint64_t items() const { return items_; }
  bool reduces() const { return ccom::reduces(collective_); }
  // Which items to follow: `count` random ones; all if 0 or not fewer.
  void choose(uint32_t count, std::mt19937_64& random);
  bool follows_all() const { return followed_.empty(); }
  uint64_t followed() const { return followed_.empty() ? items_ : chosen_; }
  bool follows(uint64_t item) const { return followed_.empty() || followed_[item]; }

  // Of a rank's input or output block.
  uint64_t input_item(const Plan& plan, uint32_t block) const;
  uint64_t output_item(const Plan& plan, uint32_t block) const;
  // What a rank contributes to an item. The items of a call's tiles follow one another, items() of each.
  Value contribution(Rank rank, uint64_t item) const;
  // The fingerprint of a complete item.
  uint64_t expected(uint64_t item);
  // What a complete item of a reduction is known to be an expression of.
  SumOrder order_of(uint64_t item, const Value& value);
  // "lacks the contribution of rank 3", of a sum that is not the expected one.
  std::string what_is_wrong(uint64_t item, uint64_t sum);

 private:
  uint64_t word(Rank rank, uint64_t item) const;

  Collective collective_;
  int ranks_;
  Rank root_;
  uint64_t unit_, items_;
  uint64_t seed_;
  uint64_t chosen_ = 0;  // set in followed_, which is empty if all are
  std::vector<bool> followed_;
  std::unordered_map<uint64_t, uint64_t> expected_;
  std::unordered_map<uint64_t, uint64_t> canonical_;  // expressions
};

}  // namespace ccom
