// SPDX-License-Identifier: Apache-2.0
#include "planner/message_pricer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "algorithms/level_rounds.h"
#include "algorithms/stage_plans.h"
#include "algorithms/streams.h"
#include "base/assert.h"
#include "base/collective.h"
#include "planner/phase.h"
#include "planner/wire_fabric.h"

namespace ccom {
namespace {

// Swing's streams use all links in every step only while they keep in step, which windows do not. Fitted to simulations
// of 8 to 640 hosts of 4 x 4 devices, as are the others: rings, and direct exchanges of single units.
constexpr double kWindowedSwing = 1.7;
constexpr double kWindowedSwingOfUnits = 2.6;
constexpr double kWindowedRings = 1.4;
constexpr double kWindowedUnitsDown = 1.15;
constexpr double kWindowedUnitsUp = 1.7;

// What the rank that copies most copies itself, where input and output are different buffers.
double local_bytes(const Question& question, int nranks) {
  if (question.collective == Collective::Broadcast) return static_cast<double>(question.bytes);
  const bool sums = reduces(question.collective) || question.collective == Collective::SendReceive;
  return sums ? 0 : static_cast<double>(question.bytes) / nranks;
}

// Messages beyond the first that a rank starts before it can wait: streams overlap theirs with waiting, but for once.
double posts_waited_for(const Level& level, const Cost& cost) {
  return stream_count(level) > 1 ? cost.steps + cost.posts / std::max(cost.steps, 1.0) - 1 : cost.posts;
}

// Units go on as they come, so that streams do not keep in step and get into each other's way. Fitted to simulations of
// 4 x 4 and 8 x 8.
double drift(const Level& level) { return std::clamp(1 + 0.0055 * (level.owners - 16), 1.0, 1.4); }

// A call's phases.
class Phases {
 public:
  explicit Phases(const Mediums& mediums) : mediums_(mediums), view_(mediums.view()) {}

  void add(const Cost& cost, const Medium& medium) { add(cost, medium, cost.bytes * medium.byte_ns() * medium.idle); }

  Phase& add(const Cost& cost, const Medium& medium, double transfer_ns) {
    total_.cost += cost;
    return phases_.emplace_back(
        Phase{.kind = medium.kind,
              .steps = std::max(cost.steps, 1.0),
              .latency_ns = cost.steps * medium.latency_ns +
                            cost.posts * (medium.post_ns + medium.message_ns + mediums_.reduction_ns(cost.reduced)),
              .transfer_ns = transfer_ns,
              .reduce_ns = cost.reduced * mediums_.reduce_ns(),
              .sharing = medium.sharing});
  }

  // Of what every rank sends to all others, a part may stay on its host.
  void add_to_all(const Cost& cost, const Medium& medium) {
    const double share = medium.kind == Medium::kUplinks ? mediums_.share_inside() : 0;
    if (share > 0) {
      add({0, cost.posts * share, cost.bytes * share, 0}, mediums_.inside(cost.bytes / std::max(cost.posts, 1.0)));
    }
    add({cost.steps, cost.posts * (1 - share), cost.bytes * (1 - share), cost.reduced}, medium);
  }

  void add_staged(Collective collective, double n, const Staged& shape) {
    const bool down = collective == Collective::AllReduce || collective == Collective::ReduceScatter;
    const bool up = collective != Collective::ReduceScatter;
    by_owner_ = collective != Collective::AllReduce;
    units_ = view_.nranks;
    for (const Level& level : shape.levels) streams_ *= stream_count(level);
    for (const Level& level : shape.levels) {
      if (down) add_level(level, n, true);
      if (up) add_level(level, n, false);
      if (down) total_.roundings += level_roundings(level);
      n /= level.owners;
      units_ /= level.owners;
      pieces_ *= stream_count(level);
    }
    for (const Level& core : shape.core) {
      add_level(core, n, true);
      total_.roundings += level_roundings(core);
    }
  }

  // The first window takes all phases; each further one comes as much later as the busiest wires, or the longest phase
  // of the one before it, make it wait.
  Price price(double windows = 1) const {
    Price price = total_;
    double interval = 0;
    std::array<double, Medium::kKinds> work{};
    for (const Phase& phase : phases_) {
      const double time_ns = phase.time_ns(windows);
      price.add(phase.kind, phase.latency_ns, time_ns - phase.latency_ns);
      interval = std::max(interval, phase.interval_ns(windows));
      work[phase.kind] += phase.work_ns(windows);
      work[Medium::kPosting] += phase.posting_ns + phase.reduce_ns / windows;
    }
    price.time_ns += (windows - 1) * std::max(interval, *std::ranges::max_element(work));
    return price;
  }

 private:
  void add_level(const Level& level, double n, bool down) {
    if (std::ranges::all_of(level.groups, [](const auto& group) { return group.size() < 2; })) return;
    const Cost cost = level_cost(level, n, down);
    const Medium medium = mediums_.of(level, cost.bytes / std::max(cost.posts, 1.0));
    const bool is_whole = level.groups[0].size() == static_cast<size_t>(view_.nranks);
    if (is_whole && is_to_all(level.pattern) && mediums_.share_inside() > 0) return add_to_all(cost, medium);
    Phase& phase = add(cost, medium, transfer_ns(level, medium, cost, n));
    phase.laps = static_cast<double>(torus_laps(level));
    phase.lanes = pieces_;
    if (is_own_grid(level))
      phase.gaps_ns = phase.transfer_ns * (streams_time(level, grid_speeds(), down) / grid_load(level) - 1);
    const bool is_swing = level.pattern == Pattern::Swing || level.pattern == Pattern::SwingLatency;
    const double hops = is_swing ? swing_hops(level.dims) : cost.steps * wires_between(level, medium.kind);
    phase.latency_ns =
        hops * medium.latency_ns + (posts_waited_for(level, cost) + pieces_ - 1) *
                                       (medium.post_ns + medium.message_ns + mediums_.reduction_ns(cost.reduced));
    // Where units belong to ranks a message is one stream's run of one unit: as many as the units that a rank passes
    // on.
    const double posts = std::max(cost.posts * pieces_, by_owner_ ? units_ * (1 - 1.0 / level.owners) * streams_ : 0);
    phase.least_wire_ns = posts * medium.wire_post_ns;
    phase.posting_ns = posts * medium.post_ns;
    phase.stretch = stretch_of(level, medium.kind, down);
  }

  double stretch_of(const Level& level, Medium::Kind kind, bool down) const {
    if (level.pattern == Pattern::Swing) return by_owner_ ? kWindowedSwingOfUnits : kWindowedSwing;
    if (level.pattern == Pattern::Rings) return kWindowedRings;
    if (level.pattern == Pattern::Ring || kind != Medium::kUplinks || !by_owner_) return 1;
    return down ? kWindowedUnitsDown : kWindowedUnitsUp;
  }

  // On the way of the pattern's typical message: between neighbours in the group's list, or half-way round for patterns
  // that go far; without a grid the mean of their rounds.
  double wires_between(const Level& level, Medium::Kind kind) const {
    if (kind != Medium::kLinks || level.pattern == Pattern::Ring) return 1;
    const std::vector<Rank>& group = level.groups[0];
    if (view_.dims.empty() && is_far(level)) {
      const std::vector<LevelRound> rounds = level_rounds(level, static_cast<uint32_t>(group.size()), 1);
      double wires = 0;
      for (const LevelRound& round : rounds) wires += mediums_.wires_between(group[0], group[round.to(0)]);
      return wires / static_cast<double>(rounds.size());
    }
    return mediums_.wires_between(group[0], group[is_to_all(level.pattern) || is_far(level) ? group.size() / 2 : 1]);
  }

  // Along the dimensions of the machine's own grid.
  bool is_own_grid(const Level& level) const {
    return (level.pattern == Pattern::Torus || level.pattern == Pattern::Swing) && level.dims == view_.dims;
  }
  std::vector<double> grid_speeds() const {
    std::vector<double> speeds;
    for (const LinkSpeed& speed : view_.dim_speeds) speeds.push_back(speed.bytes_per_second);
    return speeds;
  }
  // Seconds that a byte keeps the busiest link.
  double grid_load(const Level& level) const {
    const std::vector<double> loads = torus_loads(level), speeds = grid_speeds();
    double busiest = 0;
    for (size_t d = 0; d < loads.size(); ++d) busiest = std::max(busiest, loads[d] / speeds[d]);
    return busiest;
  }

  double transfer_ns(const Level& level, const Medium& medium, const Cost& cost, double n) const {
    const bool is_grid = level.pattern == Pattern::Torus || level.pattern == Pattern::Swing;
    const double drifts = is_grid && by_owner_ && level.dims.size() > 1 ? drift(level) : 1;
    if (is_own_grid(level)) return n * 1e9 * grid_load(level) * drifts;
    double bytes = cost.bytes * medium.idle;
    if (medium.kind == Medium::kLinks && is_to_all(level.pattern)) {
      const auto peers = static_cast<double>(level.groups[0].size()) - 1;
      if (view_.fabric->shape == Fabric::Shape::Full) {
        bytes = cost.bytes / peers;
      } else if (!view_.dims.empty()) {
        bytes = cost.bytes * view_.mean_hops() / view_.ports();
      } else if (view_.fabric->switches > 1) {  // several kinds of links
        return mediums_.busiest_ns(cost.bytes / peers, level.groups[0]) / medium.sharing;
      }
    } else if (medium.kind == Medium::kLinks && is_far(level) && !view_.dims.empty()) {
      bytes = cost.bytes * wires_between(level, medium.kind);
    }
    return bytes * medium.byte_ns() * drifts;
  }

  const Mediums& mediums_;
  const MachineView& view_;
  bool by_owner_ = false;  // units belong to ranks
  double units_ = 1;       // that a rank still has its part of, on the way down
  double streams_ = 1;     // of all levels
  double pieces_ = 1;      // runs of data, each a message of its own, that the streams of the levels above leave
  std::vector<Phase> phases_;
  Price total_;  // without its time
};

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
    Phases phases(mediums);
    phases.add_staged(collective, bytes, algorithm.staged);
    return phases.price(algorithm.staged.windows);
  };
  switch (algorithm.kind) {
    case MessageAlgorithm::Kind::Staged: return staged(question.collective, n);
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
