// SPDX-License-Identifier: Apache-2.0
#include "planner/message_pricer.h"

#include <algorithm>
#include <cmath>

#include "algorithms/level_rounds.h"
#include "algorithms/stage_plans.h"
#include "algorithms/streams.h"
#include "base/assert.h"
#include "base/collective.h"
#include "planner/phases.h"
#include "planner/wire_fabric.h"

namespace ccom {
namespace {

// What the rank that copies most copies itself, where input and output are different buffers.
double local_bytes(const Question& question, int nranks) {
  if (question.collective == Collective::Broadcast) return static_cast<double>(question.bytes);
  const bool sums = reduces(question.collective) || question.collective == Collective::SendReceive;
  return sums ? 0 : static_cast<double>(question.bytes) / nranks;
}

// Sums inside hosts and rounds across them take turns.
Price price_radix(const Mediums& mediums, double n, const Radix& shape) {
  const RadixCost cost = mixed_radix_cost(shape, n);
  Phases phases(mediums);
  const auto add = [&](const Cost& part, const std::vector<Rank>& group, double sharing) {
    if (group.size() < 2) return;
    Medium medium = mediums.of({.groups = {group}}, part.bytes / std::max(part.posts, 1.0));
    medium.sharing = 1;
    const double posts_ns = part.steps * (medium.post_ns + sharing * medium.wire_post_ns);
    Phase& phase = phases.add(part, medium, sharing * part.bytes * medium.byte_ns());
    phase.latency_ns = part.steps * medium.latency_ns + posts_ns + part.posts * medium.message_ns;
  };
  add(cost.inside, shape.hosts[0], 1);
  // Radices are spread over the devices: of a host's ranks as many send at once, each on its own device's uplink.
  const std::vector<Rank> pair{shape.hosts[0][0], shape.hosts.back()[0]};
  const double on_uplink = mediums.of({.pattern = Pattern::Direct, .groups = {pair}}, n).sharing;
  const double senders = std::ranges::max(shape.radices) - 1;
  add(cost.across, pair, std::max(1.0, std::ceil(senders * on_uplink / static_cast<double>(shape.hosts[0].size()))));
  Price price = phases.price();
  price.roundings = cost.roundings;
  return price;
}

Price price_pairwise(const Mediums& mediums, double n) {
  const double p = mediums.view().nranks;
  const Cost cost = direct_allgather_cost(p, n);
  if (mediums.view().fabric == nullptr) {
    Phases phases(mediums);
    phases.add_to_all(cost, mediums.view().hosts > 1 ? mediums.in_racks(mediums.across(mediums.flows(false)), {})
                                                     : mediums.inside(n / p));
    return phases.price();
  }
  double longest_ns = 0;
  for (Rank r = 1; r < mediums.view().nranks; ++r) longest_ns = std::max(longest_ns, mediums.wires().latency_ns(0, r));
  Price price{.cost = cost};
  price.add(
      Medium::kLinks, longest_ns,
      std::max(mediums.busiest_ns(n / p, mediums.all_ranks()), cost.posts * mediums.view().fabric->costs.post_ns));
  return price;
}

// A round is over when the slowest message has come, which crosses hosts if there are several; as many ranks of a host
// have such as it goes on by, all of them at most. Blocks are packed for it, and put into place in the end.
Price price_packed_rounds(const Mediums& mediums, double n, std::span<const LevelRound> rounds) {
  Phases phases(mediums);
  double copied = n;
  const auto ranks = static_cast<uint32_t>(mediums.view().nranks);
  for (const LevelRound& round : rounds) {
    const uint32_t ahead = round.to(0);
    const double distance = std::min(ahead, ranks - ahead);
    const bool crosses = mediums.view().hosts > 1;
    phases.add({1, 1, round.bytes, 0},
               crosses ? mediums.in_racks(mediums.across(std::min(distance, mediums.flows(false))), {&round, 1})
                       : mediums.inside(round.bytes));
    copied += round.bytes;
  }
  Price price = phases.price();
  price.add(Medium::kPorts, 0, copied * mediums.local_ns(copied));
  return price;
}

// Round by round of messages that wait for one another, each as long as its busiest wire. Nothing is added if the plans
// do not fit each other, which their proof will say.
Price price_plans(const Mediums& mediums, double n, std::span<const Plan> plans) {
  const Topology& topology = mediums.topology();
  const LintFabric fabric = wire_fabric(mediums.wires());
  Phases phases(mediums);
  const Result<LintReport> report = lint(plans, fabric);
  for (size_t i = 0; report && i < report->rounds.size(); ++i) {
    const LintRound& round = report->rounds[i];
    const auto senders =
        static_cast<double>(mediums.crosses_hosts(round.busiest_link) ? topology.hosts.size() : topology.ranks.size());
    const Cost cost{1, std::ceil(static_cast<double>(round.messages) / senders),
                    round.max_load / fabric.weights[round.busiest_link] * n, 0};
    phases.add(cost, mediums.of_wire(round.busiest_link, cost.bytes / cost.posts));
  }
  return phases.price();
}

Price price_of(const Mediums& mediums, const Question& question, const MessageAlgorithm& algorithm) {
  const auto n = static_cast<double>(question.bytes);
  const auto staged = [&](Collective collective, double bytes) {
    if (is_torus_of_machine(mediums.view(), collective, algorithm.staged))
      return price_torus(mediums, bytes, algorithm.staged);
    Phases phases(mediums);
    phases.add_staged(collective, bytes, algorithm.staged);
    return phases.price(algorithm.staged.windows);
  };
  switch (algorithm.kind) {
    case MessageAlgorithm::Kind::Staged:
      if (question.collective == Collective::AllToAll) {
        Phases phases(mediums);
        phases.add_exchange(n, algorithm.staged);
        return phases.price();
      }
      return staged(question.collective, n);
    case MessageAlgorithm::Kind::Tree: return price_trees(mediums, question.collective, n, {algorithm.tree});
    case MessageAlgorithm::Kind::Trees: return price_trees(mediums, question.collective, n, algorithm.trees);
    case MessageAlgorithm::Kind::Radix: return price_radix(mediums, n, algorithm.radix);
    case MessageAlgorithm::Kind::Pairwise: return price_pairwise(mediums, n);
    case MessageAlgorithm::Kind::Bruck:
      return price_packed_rounds(mediums, n, bruck_rounds(static_cast<uint32_t>(mediums.view().nranks), n));
    case MessageAlgorithm::Kind::Bine:
      return price_packed_rounds(mediums, n, bine_alltoall_rounds(static_cast<uint32_t>(mediums.view().nranks), n));
    case MessageAlgorithm::Kind::Routed: {
      const double all = n * mediums.view().nranks;
      return algorithm.tree.parent.empty() ? staged(Collective::AllGather, all)
                                           : price_trees(mediums, Collective::AllGather, all, {algorithm.tree});
    }
    case MessageAlgorithm::Kind::Explicit: return price_plans(mediums, n, algorithm.plans);
    case MessageAlgorithm::Kind::Blocks: break;
  }
  CCOM_ASSERT(!"blocks are priced with their program");
}

}  // namespace

void Price::add(Medium::Kind kind, double wait_ns, double move_ns) {
  (kind == Medium::kUplinks ? parts.across_ns : parts.inside_ns) += wait_ns + move_ns;
  parts.waits_ns += wait_ns;
  time_ns += wait_ns + move_ns;
}

Price MessagePricer::price(const MessageAlgorithm& algorithm) const {
  Price price = price_of(mediums_, question_, algorithm);
  if (!mediums_.is_stage()) {
    const double local = local_bytes(question_, mediums_.view().nranks);
    price.add(Medium::kPorts, 0, local * mediums_.local_ns(local));
  }
  if (mediums_.view().fabric != nullptr) price.parts = {};
  return price;
}

void MessagePricer::order_sends(MessageAlgorithm& algorithm) const {
  const bool is_ordered =
      question_.collective == Collective::Reduce && algorithm.trees.size() > 1 && !algorithm.trees[0].gathers;
  if (is_ordered) ccom::order_sends(mediums_, static_cast<double>(question_.bytes), algorithm.trees);
}

Price MessagePricer::price_by_steps(const MessageAlgorithm& algorithm) const {
  const int nranks = mediums_.view().nranks;
  const auto plan_of = message_plans(algorithm, question_.collective, nranks, question_.root);
  std::vector<Plan> plans;
  for (Rank rank = 0; rank < nranks; ++rank) plans.push_back(plan_of(rank));
  return price_plans(mediums_, static_cast<double>(question_.bytes), plans);
}

Price MessagePricer::price_across(const Cost& cost) const {
  Phases phases(mediums_);
  phases.add(cost, mediums_.in_racks(mediums_.across(mediums_.flows(false)), {}));
  return phases.price();
}

Price MessagePricer::price_inside(const Cost& cost) const {
  Phases phases(mediums_);
  phases.add({0, cost.posts, cost.bytes, cost.reduced}, mediums_.inside(cost.bytes / std::max(cost.posts, 1.0)));
  return phases.price();
}

}  // namespace ccom
