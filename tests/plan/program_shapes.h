// SPDX-License-Identifier: Apache-2.0
//
// Programs over hosts of many forms, for tests.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "algorithms/hierarchical.h"
#include "algorithms/stage_plans.h"
#include "base/collective.h"
#include "plan/program_verify.h"

namespace ccom {

inline constexpr Collective kProgramCollectives[] = {
    Collective::AllReduce, Collective::Reduce, Collective::Broadcast, Collective::ReduceScatter, Collective::AllGather,
    Collective::AllToAll,  Collective::Gather, Collective::Scatter,   Collective::Barrier};

inline StagePlanSource plan_source() { return {stage_plan, stage_node_plan}; }

// Hosts of so many ranks each; `seed` != 0: ranks are dealt to hosts at random.
inline HostRanks hosts_of(const std::vector<int>& sizes, uint32_t seed = 0) {
  std::vector<Rank> ranks(static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), 0)));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (seed != 0) std::ranges::shuffle(ranks, std::mt19937(seed));
  HostRanks hosts;
  auto next = ranks.begin();
  for (const int size : sizes) {
    hosts.emplace_back(next, next + size);
    std::ranges::sort(hosts.back());
    next += size;
  }
  return hosts;
}

inline NodeChoice node_choice(NodeScheme scheme) {
  NodeChoice choice;
  choice.staged = choice.readable = choice.mapped = {.scheme = scheme};
  return choice;
}

// What runs across where nothing but `pattern` decides.
inline MessageAlgorithm algorithm_across(Collective collective, int hosts, Pattern pattern, Rank root_host) {
  MessageAlgorithm across{.name = "blocks", .kind = MessageAlgorithm::Kind::Blocks};
  switch (collective) {
    case Collective::AllReduce:
      across = {.name = "staged"};
      if (pattern == Pattern::OneShot || pattern == Pattern::RecursiveDoubling) {
        across.staged.core = {flat_level(pattern, hosts)};
      } else {
        across.staged.levels = {flat_level(pattern, hosts)};
      }
      return across;
    case Collective::ReduceScatter:
    case Collective::AllGather:
    case Collective::Barrier:
      across = {.name = "staged"};
      across.staged.levels = {flat_level(pattern == Pattern::OneShot ? Pattern::Direct : pattern, hosts)};
      return across;
    case Collective::Reduce:
    case Collective::Broadcast:
      return {.name = "tree", .kind = MessageAlgorithm::Kind::Tree, .tree = knomial_tree(hosts, root_host, 2)};
    default: return across;
  }
}

// Nothing where there is no such program.
inline std::optional<Program> program_over(Collective collective, const HostRanks& hosts, int owners, Rank root,
                                           Pattern pattern) {
  if (!serves_hosts(collective, hosts, owners)) return std::nullopt;
  Rank root_host = 0;
  for (size_t host = 0; host < hosts.size(); ++host) {
    if (std::ranges::find(hosts[host], root) != hosts[host].end()) root_host = static_cast<Rank>(host);
  }
  HierarchicalShape shape{.hosts = hosts, .owners = owners};
  const bool whole = owners == 1 && (collective == Collective::AllReduce || collective == Collective::Reduce);
  shape.reduce_inside = node_choice(whole ? NodeScheme::TwoShot : NodeScheme::Direct);
  shape.spread_inside = node_choice(NodeScheme::Direct);
  shape.across = needs_blocks_across(collective, hosts, owners)
                     ? MessageAlgorithm{.name = "blocks", .kind = MessageAlgorithm::Kind::Blocks}
                     : algorithm_across(collective, static_cast<int>(hosts.size()), pattern, root_host);
  shape.lanes = static_cast<int>(kTilesUnderWay);
  return hierarchical_program(collective, is_rooted(collective) ? root : -1, shape);
}

}  // namespace ccom
