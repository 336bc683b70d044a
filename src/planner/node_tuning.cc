// SPDX-License-Identifier: Apache-2.0
#include "planner/node_tuning.h"

#include <algorithm>
#include <map>

namespace ccom {
namespace {

// Two ranks stage and read each other's part at once up to here; every further rank multiplies what each has to read,
// while the second meet that two_shot costs stays the same. Measured with 2, 4 and 8 ranks (bench/README.md).
constexpr size_t kOneShotBytes = size_t{256} << 10;
// Below it a system call costs more than it saves; two ranks that read all of each other's input copy less than with
// two shots, until it leaves the second-level cache.
constexpr size_t kReadBytes = size_t{4} << 10;
constexpr size_t kReadOneShotBytes = size_t{512} << 10;
constexpr size_t kPullBytes = size_t{16} << 20;     // beyond it staging with streamed results is better
constexpr size_t kLevelTwoBytes = size_t{2} << 20;  // if the machine does not say
// Fewer ranks read each other's lines at once faster than they pass a result on.
constexpr int kFewRanks = 16;

size_t second_level_bytes(const Host& host) {
  for (const Cache& cache : host.caches) {
    if (cache.level == 2) return cache.size_bytes;
  }
  return kLevelTwoBytes;
}

// Ranks by the memory domain that they are bound to; none if any is bound to none, or the domains are unequal.
std::vector<std::vector<Rank>> memory_domains(const Topology& topology) {
  std::map<int, std::vector<Rank>> by_node;
  for (Rank rank = 0; rank < topology.nranks(); ++rank) {
    const int node = topology.ranks[static_cast<size_t>(rank)].numa_node;
    if (node < 0) return {};
    by_node[node].push_back(rank);
  }
  std::vector<std::vector<Rank>> domains;
  for (auto& [node, ranks] : by_node) domains.push_back(std::move(ranks));
  const bool equal = std::ranges::all_of(domains, [&](const auto& d) { return d.size() == domains[0].size(); });
  return domains.size() > 1 && equal ? domains : std::vector<std::vector<Rank>>();
}

// Ranks that are likely to share their last-level cache: of one memory domain, cut by how many CPUs share it.
std::vector<std::vector<Rank>> cache_groups(const Topology& topology, std::vector<std::vector<Rank>> domains) {
  const Host& host = topology.hosts[0];
  if (domains.empty()) {
    domains.emplace_back();
    for (Rank rank = 0; rank < topology.nranks(); ++rank) domains.back().push_back(rank);
  }
  size_t sharers = SIZE_MAX;
  for (const Cache& cache : host.caches) {
    if (cache.level >= 3) sharers = static_cast<size_t>(std::max(cache.shared_by_cpus, 1));
  }
  std::vector<std::vector<Rank>> groups;
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
    tuning.small_bytes = kReadBytes;
    tuning.read_one_shot_bytes = topology.nranks() == 2 ? kReadOneShotBytes : 0;
    tuning.pull_bytes = topology.nranks() == 2 ? kPullBytes : 0;
  }
  tuning.domains = memory_domains(topology);
  // With fewer cores than ranks every further wait is a change of tasks: one meet is best there.
  if (topology.nranks() >= kFewRanks && topology.nranks() <= host.cpus) {
    std::vector<std::vector<Rank>> groups = cache_groups(topology, tuning.domains);
    if (groups.size() > 1) tuning.groups = std::move(groups);
  }
  return tuning;
}

}  // namespace ccom
