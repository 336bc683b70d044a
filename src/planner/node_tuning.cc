// SPDX-License-Identifier: Apache-2.0
#include "planner/node_tuning.h"

#include <algorithm>
#include <map>

namespace ccom {
namespace {

// Two ranks stage and read each other's part at once up to here; every further rank multiplies what each has to read,
// while the second meet that two_shot costs stays the same. Measured with 2, 4 and 8 ranks (bench/README.md).
constexpr size_t kOneShotBytes = size_t{256} << 10;
// Below it a system call costs more than it saves.
constexpr size_t kReadBytes = size_t{16} << 10;
// Below, staging is better when the inputs were just written; beyond, staging with streamed results is.
constexpr size_t kPullFromBytes = size_t{1} << 20;
constexpr size_t kPullToBytes = size_t{16} << 20;
constexpr size_t kLevelTwoBytes = size_t{2} << 20;  // if the machine does not say
// Fewer ranks read each other's lines at once faster than they pass a result on.
constexpr int kFewRanks = 16;

size_t second_level_bytes(const Host& host) {
  for (const Cache& cache : host.caches) {
    if (cache.level == 2) return cache.size_bytes;
  }
  return kLevelTwoBytes;
}

using Groups = std::vector<std::vector<Rank>>;

// Ranks with equal places of a kind; none if any has no place of that kind.
Groups ranks_by(const Topology& topology, int Place::*kind) {
  std::map<int, std::vector<Rank>> found;
  for (Rank rank = 0; rank < topology.nranks(); ++rank) {
    const int place = topology.ranks[static_cast<size_t>(rank)].*kind;
    if (place < 0) return {};
    found[place].push_back(rank);
  }
  Groups groups;
  for (auto& [place, ranks] : found) groups.push_back(std::move(ranks));
  return groups;
}

// Sums of domains are worth their own way through memory where they are few: with at least twice as many ranks in a
// domain as there are domains (by node_cost.h).
bool pays(const Groups& domains) {
  const auto is_like_first = [&](const auto& domain) { return domain.size() == domains[0].size(); };
  return domains.size() > 1 && std::ranges::all_of(domains, is_like_first) && domains[0].size() >= 2 * domains.size();
}

// Ranks that share a last-level cache. Where it is not known which: of one memory domain, cut by how many CPUs share
// one.
Groups cache_groups(const Topology& topology, Groups domains) {
  if (Groups known = ranks_by(topology, &Place::cache_group); !known.empty()) return known;
  const Host& host = topology.hosts[0];
  if (domains.empty()) {
    domains.emplace_back();
    for (Rank rank = 0; rank < topology.nranks(); ++rank) domains.back().push_back(rank);
  }
  size_t sharers = SIZE_MAX;
  for (const Cache& cache : host.caches) {
    if (cache.level >= 3) sharers = static_cast<size_t>(std::max(cache.shared_by_cpus, 1));
  }
  Groups groups;
  for (const std::vector<Rank>& domain : domains) {
    for (size_t i = 0; i < domain.size(); ++i) {
      if (i % std::min(sharers, domain.size()) == 0) groups.emplace_back();
      groups.back().push_back(domain[i]);
    }
  }
  return groups;
}

}  // namespace

NodeTuning node_tuning(const Topology& topology) {
  NodeTuning tuning;
  const Host& host = topology.hosts[0];
  const auto others = static_cast<size_t>(std::max(topology.nranks() - 1, 1));
  tuning.one_shot_bytes = kOneShotBytes / (others * others);
  tuning.stream_bytes = 2 * static_cast<size_t>(host.cpus) * second_level_bytes(host);
  // With a core per rank the kernel's copy is cheaper than two through staging memory; with fewer, what it reads is in
  // no cache any more.
  if (topology.nranks() <= host.cpus) {
    tuning.read_bytes = kReadBytes;
    tuning.pull_from_bytes = kPullFromBytes;
    tuning.pull_to_bytes = topology.nranks() == 2 ? kPullToBytes : 0;
  }
  const Groups domains = ranks_by(topology, &Place::numa_node);
  if (pays(domains)) tuning.domains = domains;
  // With fewer cores than ranks every further wait is a change of tasks: one meet is best there.
  if (topology.nranks() >= kFewRanks && topology.nranks() <= host.cpus) {
    Groups groups = cache_groups(topology, domains);
    // A leader reads what its group need not read: a group of one saves nothing.
    const bool saves = 2 * groups.size() <= static_cast<size_t>(topology.nranks());
    if (groups.size() > 1 && saves) tuning.groups = std::move(groups);
  }
  return tuning;
}

size_t small_call_bytes(const Topology& topology, int host) {
  Topology alone;
  alone.hosts = {topology.hosts[static_cast<size_t>(host)]};
  const std::vector<Rank> ranks = topology.ranks_of(host);
  for (const Rank rank : ranks) {
    alone.ranks.push_back(topology.ranks[static_cast<size_t>(rank)]);
    alone.ranks.back().host = 0;
  }
  Host& machine = alone.hosts[0];
  machine.cpus = std::max(1, machine.cpus * static_cast<int>(ranks.size()) / topology.ranks_on_machine_of(host));
  const NodeTuning tuning = node_tuning(alone);
  return tuning.groups.empty() ? tuning.small_bytes : 0;
}

}  // namespace ccom
