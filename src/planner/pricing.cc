// SPDX-License-Identifier: Apache-2.0
#include "planner/pricing.h"

#include <algorithm>
#include <cmath>

#include "algorithms/stage_plans.h"
#include "base/assert.h"
#include "base/collective.h"
#include "planner/message_pricer.h"
#include "planner/program_pricing.h"
#include "planner/wire_fabric.h"

namespace ccom {
namespace {

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
void price_among_all(MessagePricer& pricer, const Cost& cost, double idle) {
  if (!pricer.several_hosts()) return pricer.add_inside(cost);
  const double share = pricer.share_inside();
  Cost inside{0, cost.posts * share, cost.bytes * share, 0};
  Cost across{cost.steps, cost.posts * (1 - share), cost.bytes * (1 - share), cost.reduced};
  if (share > 0) pricer.add_inside(inside);
  pricer.add_across(across, pricer.flows(), idle);
}

void price_level(MessagePricer& pricer, const Level& level, const Cost& cost) {
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

void price_staged(MessagePricer& pricer, const Question& question, const MessageAlgorithm& algorithm) {
  const bool down = question.collective == Collective::AllReduce || question.collective == Collective::ReduceScatter;
  const bool up = question.collective != Collective::ReduceScatter;
  auto n = static_cast<double>(question.bytes);
  for (const Level& level : algorithm.staged.levels) {
    if (down) price_level(pricer, level, level_cost(level, n, true));
    if (up) price_level(pricer, level, level_cost(level, n, false));
    if (down) pricer.round(level_roundings(level));
    n /= level.owners;
  }
  for (const Level& core : algorithm.staged.core) {
    price_level(pricer, core, level_cost(core, n, true));
    pricer.round(level_roundings(core));
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
void price_tree(MessagePricer& pricer, const Question& question, const MessageAlgorithm& algorithm) {
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
    const double once = !by_unit    ? ways * n * (1 + (depth - 1) / chunks)
                        : depth > 1 ? n
                                    : n / pricer.topology().nranks();
    const bool up = only_root_writes(question.collective);
    const double both = (cost.bytes + once) / 2;
    ways > 1 ? pricer.add_inside(cost, both, both)
             : pricer.add_inside(cost, up ? once : cost.bytes, up ? cost.bytes : once);
  }
  if (sums) pricer.round(static_cast<int>(depth));
}

void price_alltoall(MessagePricer& pricer, const Question& question, const MessageAlgorithm& algorithm) {
  const double p = pricer.topology().nranks();
  const auto n = static_cast<double>(question.bytes);
  if (algorithm.kind == MessageAlgorithm::Kind::Routed && !algorithm.tree.parent.empty()) {
    Question gather = question;
    gather.collective = Collective::AllGather;
    gather.bytes = question.bytes * static_cast<size_t>(pricer.topology().nranks());
    return price_tree(pricer, gather, algorithm);
  }
  if (algorithm.kind == MessageAlgorithm::Kind::Routed) {
    for (const Level& level : algorithm.staged.levels) price_level(pricer, level, level_cost(level, n * p, false));
    return;
  }
  price_among_all(pricer, direct_allgather_cost(p, n), 1);
}

// By its steps: round by round of messages that wait for one another, each as long as its busiest wire. Nothing is
// added if the plans do not fit each other, which their proof will say.
void price_plans(MessagePricer& pricer, const Question& question, std::span<const Plan> plans) {
  const Topology& topology = pricer.topology();
  const Wires wires(topology);
  const LintFabric fabric = wire_fabric(wires);
  const Result<LintReport> report = lint(plans, fabric);
  if (!report) return;
  for (const LintRound& round : report->rounds) {
    const uint32_t wire = round.busiest_link;
    const bool is_across = kind_of(wires.name(wire)) == "uplink";
    const auto senders = static_cast<double>(is_across ? topology.hosts.size() : topology.ranks.size());
    const Cost cost{1, std::ceil(static_cast<double>(round.messages) / senders),
                    round.max_load / fabric.weights[wire] * static_cast<double>(question.bytes), 0};
    if (topology.hosts[0].imposed) {
      pricer.add(cost, wires[wire].speed);
    } else {
      is_across ? pricer.add_across(cost, pricer.flows(true)) : pricer.add_inside(cost);
    }
  }
}

}  // namespace

Price price(const Topology& topology, const Question& question, const MessageAlgorithm& algorithm, double flows) {
  MessagePricer pricer(topology, question, flows);
  switch (algorithm.kind) {
    case MessageAlgorithm::Kind::Staged: price_staged(pricer, question, algorithm); break;
    case MessageAlgorithm::Kind::Tree: price_tree(pricer, question, algorithm); break;
    case MessageAlgorithm::Kind::Pairwise:
    case MessageAlgorithm::Kind::Routed: price_alltoall(pricer, question, algorithm); break;
    case MessageAlgorithm::Kind::Explicit: price_plans(pricer, question, algorithm.plans); break;
    case MessageAlgorithm::Kind::Trees:
    case MessageAlgorithm::Kind::Radix: return price_by_steps(topology, question, algorithm, flows);
    case MessageAlgorithm::Kind::Blocks: CCOM_ASSERT(!"priced with its program");
  }
  if (flows == 0) pricer.add_local(local_bytes(question, topology.nranks()));  // in a stage blocks are in place
  return pricer.take();
}

Price price_by_steps(const Topology& topology, const Question& question, const MessageAlgorithm& algorithm,
                     double flows) {
  const auto plan_of = message_plans(algorithm, question.collective, topology.nranks(), question.root);
  std::vector<Plan> plans;
  for (Rank rank = 0; rank < topology.nranks(); ++rank) plans.push_back(plan_of(rank));
  MessagePricer pricer(topology, question, flows);
  price_plans(pricer, question, plans);
  return pricer.take();
}

Price price_across(const Topology& hosts, const Cost& cost, double flows) {
  const Question question;
  MessagePricer pricer(hosts, question, flows);
  pricer.add_across(cost, flows);
  return pricer.take();
}

Price price(const Topology& topology, const Question& question, const Program& program) {
  return program.is_messages() ? price(topology, question, program.stages[0].messages)
                               : price_program(topology, question, program).whole;
}

}  // namespace ccom
