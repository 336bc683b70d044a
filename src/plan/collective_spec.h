// SPDX-License-Identifier: Apache-2.0
//
// What a collective's blocks mean, symbolically: what each rank contributes, and what its output must hold.
//
// Items. A collective's data are numbered: the blocks of the vector (allreduce, broadcast, reduce), of all units
// (reduce-scatter, allgather, gather, scatter) or of all pairs of ranks (all-to-all). An input block contributes to
// exactly one item, an output block holds exactly one, so items never mix and any of them can be followed alone.
//
// Under rotation (verify_rotations) everything is seen from the rank that holds it: rank r's view is that of rank 0
// with ranks renumbered by -r and items by -r * items / nranks. Words are the same in every view, `origin` is not.
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
  // `any`: one of the plans. Rotated: rank 0's.
  CollectiveSpec(const Plan& any, uint64_t seed, bool is_rotated);

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
  // What rank `plan.rank` contributes with that block.
  Value input(const Plan& plan, uint32_t block) const;
  // The fingerprint of a complete item.
  uint64_t expected(uint64_t item);
  // "lacks the contribution of rank 3", of a sum that is not the expected one.
  std::string what_is_wrong(uint64_t item, uint64_t sum);
  // An item as the rank sees it that is `distance` ranks further on (rotated only).
  uint64_t seen_from(uint64_t item, uint64_t distance) const;

 private:
  uint64_t word(uint64_t rank, uint64_t item) const;

  Collective collective_;
  uint64_t ranks_, unit_, root_, items_;
  uint64_t seed_;
  uint64_t turn_ = 0;    // items per rank, if rotated
  uint64_t chosen_ = 0;  // set in followed_, which is empty if all are
  std::vector<bool> followed_;
  std::unordered_map<uint64_t, uint64_t> expected_;
};

}  // namespace ccom
