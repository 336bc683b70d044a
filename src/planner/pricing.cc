// SPDX-License-Identifier: Apache-2.0
#include "planner/pricing.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "algorithms/copy_cost.h"
#include "base/assert.h"
#include "base/collective.h"
#include "planner/node_machine.h"
#include "planner/program_pricing.h"

namespace ccom {
namespace {

// A message inside a host costs latency when it is waited for, and this share of it when it is only posted.
constexpr double kPostShare = 0.2;
// Of messages inside a host that go through system calls, processor time is the cost, and more ranks than cores share
// the cores.
constexpr double kSystemCallNs = 4000;
// A rank's system calls and copies keep this much network busy.
constexpr double kRankBytesPerSecond = 2e9;
// Flows that a wire has no need of take turns on it in tens of milliseconds, and a tile is done when its slowest flow
// is: the wire idles. Measured with 2 x 4 ranks at 1 Gbit/s.
constexpr double kSurplusFlows = 1.2;
// Each message of a host's ranks to another host, one after another: system calls, interrupts.
constexpr double kMessageNs = 2000;

int ceil_log2(double n) { return n <= 1 ? 0 : static_cast<int>(std::ceil(std::log2(n) - 1e-9)); }

// Sums up phases; knows the speeds.
class Pricer {
 public:
  // flows: that share a host's network; 0: as the algorithm and the hosts' ranks make them.
  Pricer(const Topology& topology, const Question& question, double flows)
      : topology_(topology), question_(question), flows_(flows) {
    for (int host = 0; host < static_cast<int>(topology.hosts.size()); ++host) {
      const auto ranks = static_cast<double>(topology.ranks_of(host).size());
      const double crowding = ranks / topology.hosts[static_cast<size_t>(host)].cpus;
      if (crowding > crowding_ || (crowding == crowding_ && ranks > most_ranks_)) most_crowded_ = host;
      most_ranks_ = std::max(most_ranks_, ranks);
      crowding_ = std::max(crowding_, crowding);
    }
  }

  // A phase whose messages take `speed`, `sharing` of them at a time over one wire.
  void add(const Cost& cost, const LinkSpeed& speed, double sharing = 1) {
    price_.cost += cost;
    price_.time_ns +=
        (cost.steps + kPostShare * cost.posts) * speed.latency_ns + cost.bytes * 1e9 / speed.bytes_per_second * sharing;
    add_reductions(cost);
  }
  void round(int times) { price_.roundings += times; }

  // Messages between ranks of one host. A rank's core copies what it sends and what it receives; more ranks than cores
  // share the cores.
  void add_inside(const Cost& cost) { add_inside(cost, cost.bytes, cost.bytes); }
  void add_inside(const Cost& cost, double sent, double received) {
    const LinkSpeed& memory = topology_.memory;
    const double crowding = std::max(1.0, crowding_);
    const MessageCopies copies = copies_of(cost.bytes / std::max(cost.posts, 1.0));
    const double least_ns = 0.5e9 / memory.bytes_per_second;  // of either end
    price_.cost += cost;
    price_.time_ns += (cost.steps + kPostShare * cost.posts) * memory.latency_ns * copies.latency +
                      crowding * (sent * std::max(copies.send_ns, least_ns) +
                                  received * std::max(copies.receive_ns, least_ns));
    if (memory.latency_ns >= kSystemCallNs / 2) price_.time_ns += cost.posts * kSystemCallNs * crowding;
    add_reductions(cost);
  }
  // What a rank copies from its input to its output.
  void add_local(double bytes) {
    price_.time_ns += bytes * copies_of(bytes).local_ns * std::max(1.0, crowding_);
  }

  // Messages of `flows` ranks of a host at once through its network, where a pattern keeps a wire that much longer than
  // its bytes do.
  void add_across(const Cost& cost, double flows, double idle = 1) {
    const LinkSpeed& wire = topology_.network;
    const bool has_surplus = flows > 1 && wire.bytes_per_second < flows * kRankBytesPerSecond;
    const double carried = std::min(wire.bytes_per_second, flows * kRankBytesPerSecond);
    price_.cost += cost;
    price_.time_ns += cost.steps * wire.latency_ns + cost.posts * flows * kMessageNs +
                      cost.bytes * flows * 1e9 / carried * std::max(idle, has_surplus ? kSurplusFlows : 1);
    add_reductions(cost);
  }

  bool several_hosts() const { return topology_.hosts.size() > 1; }
  // Of the other ranks, those on the same host.
  double share_inside() const { return (most_ranks_ - 1) / std::max(topology_.nranks() - 1, 1); }
  double flows(bool is_one_by_one = false) const {
    return flows_ > 0 ? flows_ : is_one_by_one ? 1 : most_ranks_;
  }
  const Topology& topology() const { return topology_; }
  Price take() { return price_; }

 private:
  void add_reductions(const Cost& cost) {
    const double reductions = topology_.costs.reduce_bytes_per_second;  // of one rank with a core to itself
    if (reductions > 0) price_.time_ns += cost.reduced * 1e9 / reductions * std::max(1.0, crowding_);
  }
  // Through the memory of the host that has least of a core for each rank; by an imposed fabric links alone count.
  MessageCopies copies_of(double message_bytes) const {
    if (topology_.hosts[0].imposed) return {};
    const HostMachine host(topology_, most_crowded_);
    const double unit = static_cast<double>(question_.bytes) / largest_units(question_.collective, topology_.nranks());
    const double touched = unit * static_cast<double>(total_units(question_.collective, topology_.nranks()));
    return message_copies(host.machine, static_cast<int>(most_ranks_), touched * most_ranks_ / topology_.nranks(),
                          message_bytes);
  }

  const Topology& topology_;
  const Question& question_;
  double flows_;
  double most_ranks_ = 1;
  double crowding_ = 0;
  int most_crowded_ = 0;
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
    default: CCOM_ASSERT(!"priced without a fabric"); break;
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
    default: CCOM_ASSERT(!"priced without a fabric"); return 0;
  }
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

// Of what every rank sends to all others, a part stays on its host.
void price_among_all(Pricer& pricer, const Cost& cost, double idle) {
  if (!pricer.several_hosts()) return pricer.add_inside(cost);
  const double share = pricer.share_inside();
  Cost inside{0, cost.posts * share, cost.bytes * share, 0};
  Cost across{cost.steps, cost.posts * (1 - share), cost.bytes * (1 - share), cost.reduced};
  if (share > 0) pricer.add_inside(inside);
  pricer.add_across(across, pricer.flows(), idle);
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
      const bool to_all = level.pattern == Pattern::Direct || level.pattern == Pattern::OneShot;
      if (to_all && level.groups[0].size() == static_cast<size_t>(pricer.topology().nranks())) {
        price_among_all(pricer, cost, two_ranks ? 1 : idle_factor(level.pattern));
        break;
      }
      // A ring in rank order leaves a host once.
      const double flows = pricer.flows(level.pattern == Pattern::Ring);
      pricer.add_across(cost, flows, two_ranks ? 1 : idle_factor(level.pattern));
      break;
    }
  }
}

// What the rank that copies most copies itself, where input and output are different buffers.
double local_bytes(const Question& question, int nranks) {
  if (question.collective == Collective::Broadcast) return static_cast<double>(question.bytes);
  const bool sums = reduces(question.collective) || question.collective == Collective::SendReceive;
  return sums ? 0 : static_cast<double>(question.bytes) / nranks;
}

void price_staged(Pricer& pricer, const Question& question, const MessageAlgorithm& algorithm) {
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
void price_tree(Pricer& pricer, const Question& question, const MessageAlgorithm& algorithm) {
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
  if (pricer.several_hosts()) {
    pricer.add_across(cost, pricer.flows(true));
  } else {
    // Of its parent an inner rank gets, or gives it, everything once; of a star's units the leaves have one each.
    const double once = !by_unit ? ways * n * (1 + (depth - 1) / chunks)
                        : depth > 1 ? n : n / pricer.topology().nranks();
    const bool up = only_root_writes(question.collective);
    const double both = (cost.bytes + once) / 2;
    ways > 1 ? pricer.add_inside(cost, both, both)
             : pricer.add_inside(cost, up ? once : cost.bytes, up ? cost.bytes : once);
  }
  if (sums) pricer.round(static_cast<int>(depth));
}

void price_alltoall(Pricer& pricer, const Question& question, const MessageAlgorithm& algorithm) {
  const double p = pricer.topology().nranks();
  const auto n = static_cast<double>(question.bytes);
  if (algorithm.kind == MessageAlgorithm::Kind::Routed && !algorithm.tree.parent.empty()) {
    Question gather = question;
    gather.collective = Collective::AllGather;
    gather.bytes = question.bytes * static_cast<size_t>(pricer.topology().nranks());
    return price_tree(pricer, gather, algorithm);
  }
  if (algorithm.kind == MessageAlgorithm::Kind::Routed) {
    for (const Level& level : algorithm.staged.levels) price_level(pricer, level, n * p, false, true);
    return;
  }
  price_among_all(pricer, direct_allgather_cost(p, n), 1);
}

}  // namespace

Price price(const Topology& topology, const Question& question, const MessageAlgorithm& algorithm, double flows) {
  Pricer pricer(topology, question, flows);
  switch (algorithm.kind) {
    case MessageAlgorithm::Kind::Staged: price_staged(pricer, question, algorithm); break;
    case MessageAlgorithm::Kind::Tree: price_tree(pricer, question, algorithm); break;
    case MessageAlgorithm::Kind::Pairwise:
    case MessageAlgorithm::Kind::Routed: price_alltoall(pricer, question, algorithm); break;
    default: CCOM_ASSERT(!"priced without a fabric");
  }
  if (flows == 0) pricer.add_local(local_bytes(question, topology.nranks()));  // in a stage blocks are in place
  return pricer.take();
}

Price price_across(const Topology& hosts, const Cost& cost, double flows) {
  Pricer pricer(hosts, {}, flows);
  pricer.add_across(cost, flows);
  return pricer.take();
}

Price price(const Topology& topology, const Question& question, const Program& program) {
  return program.is_messages() ? price(topology, question, program.stages[0].messages)
                               : price_program(topology, question, program).whole;
}

}  // namespace ccom
