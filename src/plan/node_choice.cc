// SPDX-License-Identifier: Apache-2.0
//
// Node tasks of the collectives, and the choice of a shape by reach.
#include <algorithm>

#include "plan/node_plan.h"

namespace ccom {
NodeTask node_task(Collective collective, int nranks, Rank root) {
  NodeTask task{.collective = collective, .nranks = nranks, .root = root};
  task.sums = task.completes = reduces(collective);
  task.blocks.gives.resize(static_cast<size_t>(nranks));
  task.blocks.gets.resize(static_cast<size_t>(nranks));
  if (collective == Collective::Barrier) return task;
  for (Rank rank = 0; rank < nranks; ++rank) {
    const auto r = static_cast<size_t>(rank);
    for (uint32_t u = 0; u < input_units(collective, nranks, rank == root); ++u) {
      task.blocks.gives[r].push_back(static_cast<uint32_t>(input_item(collective, nranks, rank, u)));
    }
    for (uint32_t u = 0; u < output_units(collective, nranks, rank == root); ++u) {
      task.blocks.gets[r].push_back(static_cast<uint32_t>(output_item(collective, nranks, rank, u)));
    }
  }
  return task;
}

int64_t output_unit_of(const NodeTask& task, Rank rank, uint32_t unit) {
  if (task.collective == Collective::AllToAll) return unit;
  const auto& gives = task.blocks.gives[static_cast<size_t>(rank)];
  const auto& gets = task.blocks.gets[static_cast<size_t>(rank)];
  const auto found = std::ranges::find(gets, gives[unit]);
  return found == gets.end() ? -1 : found - gets.begin();
}

const NodeShape& NodeChoice::shape_for(std::span<const Reach> reach) const {
  if (std::ranges::any_of(reach, &Reach::output)) return mapped;
  return std::ranges::all_of(reach, &Reach::input) ? readable : staged;
}

std::string_view name_of(NodeScheme scheme) {
  switch (scheme) {
    case NodeScheme::OneShot: return "node_one_shot";
    case NodeScheme::GatherRelease: return "node_gather_release";
    case NodeScheme::TwoShot: return "node_two_shot";
    case NodeScheme::Pull: return "node_pull";
    case NodeScheme::Domains: return "node_domains";
    case NodeScheme::Direct: return "node_direct";
  }
  return "?";
}

}  // namespace ccom
