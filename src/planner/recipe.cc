// SPDX-License-Identifier: Apache-2.0
//
// From a recipe to plans, and to the tiles that a call is cut into.
#include <algorithm>
#include <memory>

#include "planner/planner.h"

namespace ccom {

Plan make_plan(const Recipe& recipe, const Call& call) {
  switch (recipe.kind) {
    case Recipe::Kind::Staged: return staged_plan(call, recipe.staged, recipe.algorithm);
    case Recipe::Kind::Tree: return tree_plan(call, recipe.tree, recipe.algorithm);
    case Recipe::Kind::Trees: return tree_plan(call, recipe.trees, recipe.algorithm);
    case Recipe::Kind::Radix: return mixed_radix_plan(call, recipe.radix, recipe.algorithm);
    case Recipe::Kind::Pairwise: return pairwise_alltoall_plan(call);
    case Recipe::Kind::Routed: {
      Call gather = call;
      gather.collective = Collective::AllGather;
      gather.in_place = false;
      return routed_alltoall_plan(call, recipe.tree.parent.empty() ? staged_plan(gather, recipe.staged, "")
                                                                   : tree_plan(gather, recipe.tree, ""));
    }
    case Recipe::Kind::Node:
    case Recipe::Kind::Hosts: break;
  }
  return {};
}

std::function<Plan(Rank)> plan_maker(const Recipe& recipe, Collective collective, int nranks, Rank root) {
  if (recipe.kind != Recipe::Kind::Staged) {
    return [&recipe, collective, nranks, root](Rank rank) {
      return make_plan(recipe, {collective, rank, nranks, root, false});
    };
  }
  const auto plans = std::make_shared<StagedPlans>(recipe.staged, nranks, collective);
  return [&recipe, plans, collective, nranks, root](Rank rank) {
    return plans->make({collective, rank, nranks, root, false}, recipe.algorithm);
  };
}

namespace {

// Units of scratch per unit of data, on the rank that needs most.
double scratch_units(const Recipe& recipe, Collective collective, int nranks) {
  if (recipe.kind == Recipe::Kind::Tree) {
    std::vector<double> parts(recipe.tree.parent.size(), 2);  // a rank's own part, and the sum
    for (const Rank parent : recipe.tree.parent) {
      if (parent >= 0) ++parts[static_cast<size_t>(parent)];
    }
    return *std::ranges::max_element(parts);
  }
  double units = collective == Collective::ReduceScatter ? nranks : 0;  // partial sums
  double share = collective == Collective::ReduceScatter ? nranks : 1;
  for (const Level& level : recipe.staged.levels) {
    const auto members = static_cast<double>(level.groups.empty() ? 1 : level.groups[0].size());
    if (level.pattern == Pattern::Direct && members > 2) units += share * members / level.owners;
    share /= level.owners;
  }
  for (const Level& core : recipe.staged.core) units += share * static_cast<double>(core.groups[0].size());
  return units;
}

// Can every rank's plan work on an element range of each unit? Runs of several units must not occur.
bool can_be_tiled(const Recipe& recipe, Collective collective) {
  if (collective == Collective::AllReduce || collective == Collective::Reduce) return true;
  if (collective != Collective::ReduceScatter || recipe.kind != Recipe::Kind::Staged) return false;
  return recipe.staged.levels.size() == 1 && recipe.staged.levels[0].pattern != Pattern::Circulant;
}

}  // namespace

size_t tile_elements(const Recipe& recipe, Collective collective, int nranks, size_t element_bytes,
                     size_t scratch_bytes) {
  constexpr size_t kGranule = 4096;
  if (!can_be_tiled(recipe, collective)) return SIZE_MAX;
  const double units = scratch_units(recipe, collective, nranks);
  if (units == 0) return SIZE_MAX;
  const auto elements =
      static_cast<size_t>(static_cast<double>(scratch_bytes) / units / static_cast<double>(element_bytes));
  return std::max(elements / kGranule, size_t{1}) * kGranule;
}

}  // namespace ccom
