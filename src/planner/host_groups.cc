// SPDX-License-Identifier: Apache-2.0
#include "planner/host_groups.h"

#include <algorithm>
#include <map>

namespace ccom {
namespace {

// Ranks with equal places of a kind; none if any has no place of that kind.
RankGroups ranks_by(const Topology& topology, int host, int Place::*kind) {
  std::map<int, std::vector<Rank>> found;
  Rank local = 0;
  for (const Rank rank : topology.ranks_of(host)) {
    const int place = topology.ranks[static_cast<size_t>(rank)].*kind;
    if (place < 0) return {};
    found[place].push_back(local++);
  }
  RankGroups groups;
  for (auto& [place, ranks] : found) groups.push_back(std::move(ranks));
  return groups;
}

RankGroups cut_by_sharers(const Topology& topology, int host, RankGroups domains) {
  if (domains.empty()) {
    domains.emplace_back();
    const auto ranks = static_cast<Rank>(topology.ranks_of(host).size());
    for (Rank local = 0; local < ranks; ++local) domains.back().push_back(local);
  }
  size_t sharers = SIZE_MAX;
  for (const Cache& cache : topology.hosts[static_cast<size_t>(host)].caches) {
    if (cache.level >= 3) sharers = static_cast<size_t>(std::max(cache.shared_by_cpus, 1));
  }
  RankGroups groups;
  for (const std::vector<Rank>& domain : domains) {
    for (size_t i = 0; i < domain.size(); ++i) {
      if (i % std::min(sharers, domain.size()) == 0) groups.emplace_back();
      groups.back().push_back(domain[i]);
    }
  }
  return groups;
}

}  // namespace

RankGroups domains_of(const Topology& topology, int host) {
  RankGroups domains = ranks_by(topology, host, &Place::numa_node);
  const auto is_like_first = [&](const auto& domain) { return domain.size() == domains[0].size(); };
  if (domains.size() < 2 || !std::ranges::all_of(domains, is_like_first)) return {};
  return domains;
}

RankGroups cache_groups_of(const Topology& topology, int host) {
  RankGroups groups = ranks_by(topology, host, &Place::cache_group);
  if (groups.empty()) groups = cut_by_sharers(topology, host, ranks_by(topology, host, &Place::numa_node));
  // A leader reads what its group need not read: a group of one saves nothing.
  const bool saves = 2 * groups.size() <= topology.ranks_of(host).size();
  return groups.size() > 1 && saves ? groups : RankGroups{};
}

}  // namespace ccom
