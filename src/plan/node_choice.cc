// SPDX-License-Identifier: Apache-2.0
//
// Node tasks of the collectives, and the choice of a shape by reach.
#include <algorithm>
#include <numeric>

#include "base/assert.h"
#include "plan/node_plan.h"

namespace ccom {
namespace {

std::vector<uint32_t> iota(uint32_t first, int count, uint32_t step = 1) {
  std::vector<uint32_t> blocks(static_cast<size_t>(count));
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = first + static_cast<uint32_t>(i) * step;
  return blocks;
}

}  // namespace

NodeTask node_task(Collective collective, int nranks, Rank root) {
  NodeTask task{.collective = collective, .nranks = nranks, .root = root};
  task.sums = task.completes = collective == Collective::AllReduce || collective == Collective::Reduce ||
                               collective == Collective::ReduceScatter;
  for (Rank rank = 0; rank < nranks; ++rank) {
    const auto own = static_cast<uint32_t>(rank);
    const auto all = static_cast<uint32_t>(nranks);
    std::vector<uint32_t> gives, gets;
    switch (collective) {
      case Collective::AllReduce: gives = gets = {0}; break;
      case Collective::Reduce: gives = {0}, gets = rank == root ? gives : gets; break;
      case Collective::Broadcast: gets = {0}, gives = rank == root ? gets : gives; break;
      case Collective::ReduceScatter: gives = iota(0, nranks), gets = {own}; break;
      case Collective::AllGather: gives = {own}, gets = iota(0, nranks); break;
      case Collective::AllToAll: gives = iota(own * all, nranks), gets = iota(own, nranks, all); break;
      case Collective::Gather: gives = {own}, gets = rank == root ? iota(0, nranks) : gets; break;
      case Collective::Scatter: gets = {own}, gives = rank == root ? iota(0, nranks) : gives; break;
      default: break;  // Barrier
    }
    task.blocks.gives.push_back(std::move(gives));
    task.blocks.gets.push_back(std::move(gets));
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
