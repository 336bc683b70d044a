// SPDX-License-Identifier: Apache-2.0
#include "planner/pricing.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "planner/program_pricing.h"

namespace ccom {
namespace {

// A message costs latency when it is waited for, and this share of it when it is only posted.
constexpr double kPostShare = 0.2;
// Of messages inside a host that go through system calls, processor time is the cost, and more ranks than cores share
// the cores.
constexpr double kSystemCallNs = 4000;

int ceil_log2(double n) { return n <= 1 ? 0 : static_cast<int>(std::ceil(std::log2(n) - 1e-9)); }

// Sums up phases; knows the speeds.
class Pricer {
 public:
  Pricer(const Topology& topology) : topology_(topology) {
    for (int host = 0; host < static_cast<int>(topology.hosts.size()); ++host) {
      const auto ranks = static_cast<double>(topology.ranks_of(host).size());
      most_ranks_ = std::max(most_ranks_, ranks);
      crowding_ = std::max(crowding_, ranks / topology.hosts[static_cast<size_t>(host)].cpus);
    }
  }

  // A phase whose messages take `speed`, `sharing` of them at a time over one wire.
  void add(const Cost& cost, const LinkSpeed& speed, double sharing = 1) {
    price_.cost += cost;
    price_.time_ns +=
        (cost.steps + kPostShare * cost.posts) * speed.latency_ns + cost.bytes * 1e9 / speed.bytes_per_second * sharing;
    const double reductions = topology_.costs.reduce_bytes_per_second;  // of one rank with a core to itself
    if (reductions > 0) price_.time_ns += cost.reduced * 1e9 / reductions * std::max(1.0, crowding_);
  }
  void round(int times) { price_.roundings += times; }

  // Messages between ranks of one host: more ranks than cores share the cores.
  void add_inside(const Cost& cost) {
    const double crowding = std::max(1.0, crowding_);
    add(cost, topology_.memory, crowding);
    if (topology_.memory.latency_ns >= kSystemCallNs / 2) price_.time_ns += cost.posts * kSystemCallNs * crowding;
  }
  // Messages of all ranks of a host at once through its network.
  void add_across(const Cost& cost, double flows) { add(cost, topology_.network, flows); }

  bool several_hosts() const { return topology_.hosts.size() > 1; }
  double most_ranks() const { return most_ranks_; }
  const Topology& topology() const { return topology_; }
  Price take() { return price_; }

 private:
  const Topology& topology_;
  double most_ranks_ = 1;
  double crowding_ = 0;
  Price price_;
};

Cost pattern_cost(const Level& level, double n, bool down, bool up) {
  const auto p = static_cast<double>(level.groups.empty() ? 1 : level.groups[0].size());
  Cost cost;
  switch (level.pattern) {
    case Pattern::Direct:
      if (down) cost += direct_reduce_scatter_cost(p, n);
      if (up) cost += direct_allgather_cost(p, n);
      break;
    case Pattern::Ring:
      if (down) cost += ring_reduce_scatter_cost(p, n);
      if (up) cost += ring_allgather_cost(p, n);
      break;
    case Pattern::Circulant:
      if (down) cost += circulant_reduce_scatter_cost(p, n);
      if (up) cost += circulant_allgather_cost(p, n);
      break;
    case Pattern::Torus:
      if (down) cost += torus_reduce_scatter_cost(level, n);
      if (up) cost += torus_allgather_cost(level, n);
      break;
    case Pattern::OneShot: cost += one_shot_cost(p, n); break;
    case Pattern::RecursiveDoubling: cost += recursive_doubling_cost(p, n); break;
    default: break;
  }
  return cost;
}

int pattern_roundings(const Level& level) {
  const auto p = static_cast<double>(level.groups.empty() ? 1 : level.groups[0].size());
  if (p <= 1) return 0;
  switch (level.pattern) {
    case Pattern::Direct:
    case Pattern::OneShot: return 1;
    case Pattern::Circulant:
    case Pattern::RecursiveDoubling: return ceil_log2(p);
    case Pattern::Ring: return static_cast<int>(p) - 1;
    case Pattern::Torus: return static_cast<int>(torus_reduce_scatter_cost(level, 0).steps);
    default: break;
  }
  return 0;
}

// Where a level's messages run.
enum class Medium { Memory, Fabric, Network };

Medium medium_of(const Topology& topology, const Level& level) {
  const std::vector<Rank>& group = level.groups[0];
  const Place& a = topology.ranks[static_cast<size_t>(group.front())];
  for (const Rank rank : group) {
    const Place& b = topology.ranks[static_cast<size_t>(rank)];
    if (a.host != b.host) return Medium::Network;
  }
  const Place& last = topology.ranks[static_cast<size_t>(group.back())];
  return a.device != last.device && topology.hosts[static_cast<size_t>(a.host)].imposed ? Medium::Fabric
                                                                                        : Medium::Memory;
}

// How many flows of a flat algorithm share a host's wire: a ring in rank order leaves a host once.
double flows_of(const Pricer& pricer, const Level& level) {
  return level.pattern == Pattern::Ring ? 1 : pricer.most_ranks();
}

// How much longer than its bytes a pattern keeps a wire: in a ring every rank always sends to the same peer; where
// peers change from step to step the wire idles in between. Measured with TCP, 4 hosts at 1 Gbit/s, 16 and 64 MiB:
// ring 1.00 of the wire, two-shot 0.91 to 0.97, circulant 0.86 to 0.90.
double idle_factor(Pattern pattern) {
  switch (pattern) {
    case Pattern::Circulant: return 1.13;
    case Pattern::Direct: return 1.06;
    default: return 1;
  }
}

void price_level(Pricer& pricer, const Level& level, double n, bool down, bool up) {
  const Cost cost = pattern_cost(level, n, down, up);
  switch (medium_of(pricer.topology(), level)) {
    case Medium::Memory: pricer.add_inside(cost); break;
    case Medium::Fabric: {
      const Host& host =
          pricer.topology()
              .hosts[static_cast<size_t>(pricer.topology().ranks[static_cast<size_t>(level.groups[0][0])].host)];
      const LinkSpeed speed = host.imposed->links.empty() ? host.imposed->inside_device : host.imposed->links[0].speed;
      // The rings of a device's cores share its links.
      pricer.add(cost, speed,
                 static_cast<double>(level.groups.size()) / static_cast<double>(pricer.topology().hosts.size()));
      break;
    }
    case Medium::Network: {
      const bool two_ranks = level.groups[0].size() == 2;
      pricer.add_across(cost, flows_of(pricer, level) * (two_ranks ? 1 : idle_factor(level.pattern)));
      break;
    }
  }
}

Price price_staged(const Topology& topology, const Question& question, const MessageAlgorithm& algorithm) {
  Pricer pricer(topology);
  const bool down = question.collective == Collective::AllReduce || question.collective == Collective::ReduceScatter;
  const bool up = question.collective != Collective::ReduceScatter;
  auto n = static_cast<double>(question.bytes);
  for (const Level& level : algorithm.staged.levels) {
    price_level(pricer, level, n, down, up);
    if (down) pricer.round(pattern_roundings(level));
    n /= level.owners;
  }
  for (const Level& core : algorithm.staged.core) {
    price_level(pricer, core, n, true, true);
    pricer.round(pattern_roundings(core));
  }
  return pricer.take();
}

int depth_of(const Tree& tree) {
  int deepest = 0;
  for (size_t r = 0; r < tree.parent.size(); ++r) {
    int depth = 0;
    for (Rank at = static_cast<Rank>(r); tree.parent[static_cast<size_t>(at)] >= 0;
         at = tree.parent[static_cast<size_t>(at)])
      ++depth;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

// A pipelined tree: the widest inner rank sends (or receives) n for each child; the chunks fill the depth once.
Price price_tree(const Topology& topology, const Question& question, const MessageAlgorithm& algorithm) {
  Pricer pricer(topology);
  const Tree& tree = algorithm.tree;
  std::vector<double> children(tree.parent.size());
  for (const Rank parent : tree.parent) {
    if (parent >= 0) ++children[static_cast<size_t>(parent)];
  }
  const double widest = *std::ranges::max_element(children);
  const double depth = depth_of(tree);
  const auto n = static_cast<double>(question.bytes);
  const bool by_unit = is_rooted(question.collective) && is_per_rank(question.collective);
  const bool sums = reduces(question.collective);
  const double ways = is_rooted(question.collective) ? 1 : 2;
  const double chunks = tree.chunks;
  Cost cost;
  cost.steps = ways * (depth + chunks - 1);
  cost.posts = ways * widest * chunks;
  // Gather and scatter halve what is left with each level; the root moves everything once.
  cost.bytes = by_unit ? n : ways * (widest * n + (depth - 1) * widest * n / chunks);
  cost.reduced = sums ? (widest + 1) * n * (1 + (depth - 1) / chunks) : 0;
  pricer.several_hosts() ? pricer.add_across(cost, 1) : pricer.add_inside(cost);
  if (sums) pricer.round(static_cast<int>(depth));
  return pricer.take();
}

Price price_alltoall(const Topology& topology, const Question& question, const MessageAlgorithm& algorithm) {
  Pricer pricer(topology);
  const double p = topology.nranks();
  const auto n = static_cast<double>(question.bytes);
  if (algorithm.kind == MessageAlgorithm::Kind::Routed && !algorithm.tree.parent.empty()) {
    Question gather = question;
    gather.collective = Collective::AllGather;
    gather.bytes = question.bytes * static_cast<size_t>(topology.nranks());
    return price_tree(topology, gather, algorithm);
  }
  if (algorithm.kind == MessageAlgorithm::Kind::Routed) {
    for (const Level& level : algorithm.staged.levels) price_level(pricer, level, n * p, false, true);
    return pricer.take();
  }
  const Cost cost = direct_allgather_cost(p, n);
  pricer.several_hosts() ? pricer.add_across(cost, pricer.most_ranks()) : pricer.add_inside(cost);
  return pricer.take();
}

}  // namespace

Price price(const Topology& topology, const Question& question, const MessageAlgorithm& algorithm) {
  switch (algorithm.kind) {
    case MessageAlgorithm::Kind::Staged: return price_staged(topology, question, algorithm);
    case MessageAlgorithm::Kind::Tree: return price_tree(topology, question, algorithm);
    default: return price_alltoall(topology, question, algorithm);
  }
}

Price price(const Topology& topology, const Question& question, const Program& program) {
  return program.is_messages() ? price(topology, question, program.stages[0].messages)
                               : price_program(topology, question, program).whole;
}

}  // namespace ccom
