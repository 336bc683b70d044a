// SPDX-License-Identifier: Apache-2.0
#include "planner/fabric_pricing.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "algorithms/streams.h"
#include "planner/fabric_trees.h"
#include "topology/wires.h"

namespace ccom {
namespace {

// Swing's streams use all links in every step only while they keep in step, which windows do not. Fitted to simulations
// of 8 to 640 hosts of 4 x 4 devices, as are the others: rings, and direct exchanges of single units.
constexpr double kWindowedSwing = 1.7;
constexpr double kWindowedSwingOfUnits = 2.6;
constexpr double kWindowedRings = 1.4;
constexpr double kWindowedUnitsDown = 1.15;
constexpr double kWindowedUnitsUp = 1.7;
// Where dimensions differ in length, or their links in speed, streams do not keep in step either. Fitted to an
// UltraServer, 3 x 5 and 4 x 8.
constexpr double kUnevenTorus = 1.5;
constexpr double kUnevenSwing = 2;

enum Wiring : uint8_t { kPorts, kLinks, kUplinks, kPosting, kKinds };

struct Medium {
  Wiring kind = kLinks;
  LinkSpeed speed;
  double wire_post_ns = 0;
  double sharing = 1;  // ranks that use one wire in turns
};

// One phase, for the whole vector and for one window of it.
struct Phase {
  Wiring kind = kLinks;
  double steps = 1;
  double latency_ns = 0;     // of its messages, whatever their length
  double transfer_ns = 0;    // of all bytes on the busiest wire, for one rank
  double least_wire_ns = 0;  // that its messages occupy a wire even if they are empty
  double sharing = 1;
  double posting_ns = 0;  // of the rank
  double stretch = 1;     // how much longer wires are busy while other windows use them too

  double wire_ns(double windows) const { return std::max(transfer_ns / windows, least_wire_ns); }
  // While one rank's message is on its way, the wire serves others; but never before the first has come.
  double time_ns(double windows) const {
    return std::max({sharing * wire_ns(windows) + latency_ns / steps, latency_ns + wire_ns(windows), posting_ns});
  }
  double work_ns(double windows) const { return sharing * wire_ns(windows) * stretch; }
};

class FabricPricer {
 public:
  FabricPricer(const Topology& topology, const FabricView& view) : topology_(topology), view_(view), wires_(topology) {}

  Price staged(const Question& question, const Staged& shape) {
    const bool down = question.collective == Collective::AllReduce || question.collective == Collective::ReduceScatter;
    const bool up = question.collective != Collective::ReduceScatter;
    auto n = static_cast<double>(question.bytes);
    by_owner_ = question.collective != Collective::AllReduce;
    units_ = view_.nranks();
    streams_ = 1;
    for (const Level& level : shape.levels) streams_ *= stream_count(level);
    double pieces = 1;
    for (const Level& level : shape.levels) {
      if (down) add_level(level, n, pieces, true);
      if (up) add_level(level, n, pieces, false);
      if (down) price_.roundings += level_roundings(level);
      n /= level.owners;
      units_ /= level.owners;
      pieces *= stream_count(level);
    }
    for (const Level& core : shape.core) {
      add_level(core, n, pieces, true);
      price_.roundings += level_roundings(core);
    }
    price_.time_ns = makespan(shape.windows);
    return price_;
  }

  Price radix(const Question& question, const Radix& shape);

 private:
  double post_ns() const { return view_.fabric->costs.post_ns; }

  // Where units belong to ranks a message is one stream's run of one unit: as many as the units that a rank passes on.
  double unit_posts(const Level& level) const { return by_owner_ ? units_ * (1 - 1.0 / level.owners) * streams_ : 0; }

  // Units go on as they come, so that streams do not keep in step and get into each other's way. Fitted to simulations
  // of 4 x 4 and 8 x 8.
  static double drift(const Level& level) { return std::clamp(1 + 0.0055 * (level.owners - 16), 1.0, 1.4); }

  // Where a level's messages run, from two ranks that exchange some.
  Medium medium_of(const Level& level) const {
    const std::vector<Rank>& group = level.groups[0];
    const Place& first = place(group.front());
    const Place& last = place(group.back());
    const Fabric& fabric = *view_.fabric;
    const auto any = [&](auto differs) {
      return std::ranges::any_of(group, [&](Rank r) { return differs(place(r)); });
    };
    if (any([&](const Place& p) { return p.host != first.host; })) {
      for (const Uplink& uplink : fabric.uplinks) {
        const auto devices = std::ranges::count_if(uplink.devices, [&](int d) { return d < view_.devices; });
        if (std::ranges::binary_search(uplink.devices, first.device)) {
          return {kUplinks, uplink.speed, uplink.post_ns, static_cast<double>(devices) * view_.cores};
        }
      }
      return {kUplinks, topology_.network, 0, static_cast<double>(view_.ranks_per_host())};
    }
    if (first.device == last.device) return {kPorts, fabric.inside_device, 0, 1};
    LinkSpeed slowest{0, 1e300};
    for (const Link& link : fabric.links) {
      slowest.latency_ns = std::max(slowest.latency_ns, link.speed.latency_ns);
      slowest.bytes_per_second = std::min(slowest.bytes_per_second, link.speed.bytes_per_second);
    }
    const auto beside = std::ranges::count_if(
        group, [&](Rank r) { return place(r).host == first.host && place(r).device == first.device; });
    return {kLinks, slowest, 0,
            std::max(static_cast<double>(level.groups.size()) / view_.hosts, static_cast<double>(beside))};
  }

  // A ring's chunks pass all its edges in turn: what counts is their mean latency, and the slowest one's bandwidth.
  Medium ring_medium(const Level& level) const {
    Medium medium = medium_of(level);
    const std::vector<Rank>& group = level.groups[0];
    double sum = 0;
    std::vector<uint32_t> path;
    for (size_t i = 0; i < group.size(); ++i) {
      path.clear();
      wires_.path(group[i], group[(i + 1) % group.size()], path);
      for (const uint32_t wire : path) {
        sum += wires_[wire].speed.latency_ns;
        medium.speed.bytes_per_second = std::min(medium.speed.bytes_per_second, wires_[wire].speed.bytes_per_second);
      }
    }
    medium.speed.latency_ns = sum / static_cast<double>(group.size());
    if (level.groups.size() == 1) medium.sharing = 1;  // over all ranks: a host has one edge out
    return medium;
  }

  const Place& place(Rank rank) const { return topology_.ranks[static_cast<size_t>(rank)]; }

  // `pieces`: the streams of the levels above leave as many runs of data, each a message of its own.
  void add_level(const Level& level, double n, double pieces, bool down) {
    if (level.groups.empty() || level.groups[0].size() < 2) return;
    const Medium medium = level.pattern == Pattern::Ring ? ring_medium(level) : medium_of(level);
    const Cost cost = level_cost(level, n, down);
    Phase phase;
    phase.kind = medium.kind;
    phase.sharing = medium.sharing;
    phase.steps = std::max(cost.steps, 1.0);
    phase.latency_ns = hops_of(level, cost.steps) * medium.speed.latency_ns +
                       (cost.steps + extra_posts(level, cost) + pieces - 1) * post_ns();
    phase.transfer_ns = transfer_ns(level, medium, cost, n);
    const double posts = std::max(cost.posts * pieces, unit_posts(level));
    phase.least_wire_ns = posts * medium.wire_post_ns;
    phase.posting_ns = posts * post_ns();
    const bool in_step = level.pattern != Pattern::Torus && level.pattern != Pattern::Swing;
    if (by_owner_ && level.dims.size() > 1 && !in_step) phase.transfer_ns *= drift(level);
    if (view_.fabric->costs.reduce_bytes_per_second > 0) {
      phase.transfer_ns += cost.reduced * 1e9 / view_.fabric->costs.reduce_bytes_per_second;
    }
    phase.stretch = stretch_of(level, medium.kind, down);
    phases_.push_back(phase);
    price_.cost += cost;
  }

  double stretch_of(const Level& level, Wiring kind, bool down) const {
    if (level.pattern == Pattern::Swing) return by_owner_ ? kWindowedSwingOfUnits : kWindowedSwing;
    if (level.pattern == Pattern::Rings) return kWindowedRings;
    if (level.pattern == Pattern::Ring || kind != kUplinks || !by_owner_) return 1;
    return down ? kWindowedUnitsDown : kWindowedUnitsUp;
  }

  // Links between a message's ends, summed over the steps.
  double hops_of(const Level& level, double steps) const {
    switch (level.pattern) {
      case Pattern::Swing:
      case Pattern::SwingLatency: return swing_hops(level.dims);
      default: return steps * wires_between(level);
    }
  }

  // Of the pattern's typical message: neighbours in the group's list, or half-way round for patterns that go far.
  double wires_between(const Level& level) const {
    const std::vector<Rank>& group = level.groups[0];
    if (place(group.front()).host != place(group.back()).host || level.pattern == Pattern::Ring) return 1;
    const bool is_far = level.pattern == Pattern::Direct || level.pattern == Pattern::OneShot ||
                        level.pattern == Pattern::Circulant ||
                        (level.pattern == Pattern::RecursiveDoubling && level.dims.empty());
    std::vector<uint32_t> path;
    wires_.path(group[0], group[is_far ? group.size() / 2 : 1], path);
    return static_cast<double>(path.size());
  }

  // Messages of a step beyond the first: streams overlap theirs with waiting, but for once.
  static double extra_posts(const Level& level, const Cost& cost) {
    const bool streams = stream_count(level) > 1;
    return streams ? cost.posts / std::max(cost.steps, 1.0) - 1 : cost.posts - cost.steps;
  }

  double transfer_ns(const Level& level, const Medium& medium, const Cost& cost, double n) const {
    const auto seconds = [](double bytes, double bandwidth) { return bytes * 1e9 / bandwidth; };
    const bool grid = level.pattern == Pattern::Torus || level.pattern == Pattern::Swing;
    if (grid && level.dims == view_.dims) {
      const std::vector<double> loads = torus_loads(level);
      double worst = 0;
      for (size_t d = 0; d < loads.size(); ++d) {
        worst = std::max(worst, seconds(n * loads[d], view_.dim_speeds[d].bytes_per_second));
      }
      const bool equal_speeds = std::ranges::all_of(view_.dim_speeds, [&](const LinkSpeed& speed) {
        return speed.bytes_per_second == view_.dim_speeds[0].bytes_per_second;
      });
      const bool even = equal_speeds && std::ranges::all_of(view_.dims, [&](int d) { return d == view_.dims[0]; });
      if (!even) worst *= level.pattern == Pattern::Swing ? kUnevenSwing : kUnevenTorus;
      return worst;
    }
    const bool to_all = level.pattern == Pattern::Direct || level.pattern == Pattern::OneShot;
    if (medium.kind == kLinks && to_all) {
      const auto peers = static_cast<double>(level.groups[0].size()) - 1;
      if (view_.fabric->shape == Fabric::Shape::Full) return seconds(cost.bytes / peers, medium.speed.bytes_per_second);
      if (!view_.dims.empty())
        return seconds(cost.bytes * view_.mean_hops() / view_.ports(), medium.speed.bytes_per_second);
      if (view_.fabric->switches > 1 && level.groups[0].size() == static_cast<size_t>(view_.nranks())) {
        return busiest_ns(view_, wires_, cost.bytes / peers) / medium.sharing;  // of several kinds of links
      }
    }
    if (medium.kind == kLinks && (level.pattern == Pattern::Circulant || level.pattern == Pattern::RecursiveDoubling) &&
        level.dims.empty() && !view_.dims.empty()) {
      return seconds(cost.bytes * wires_between(level), medium.speed.bytes_per_second);
    }
    const double idle = level.pattern == Pattern::Circulant ? circulant_idle(level) : 1;
    return seconds(cost.bytes * idle, medium.speed.bytes_per_second);
  }

  // Blocks that wrap around leave as two messages; the second of one round and the first of the next collide at their
  // receiver. Fitted to simulations of 13 to 640 members: 1.07 at 16, 1.36 at 640.
  static double circulant_idle(const Level& level) {
    const double rounds = std::log2(static_cast<double>(level.groups[0].size()));
    return 1 + 0.0042 * rounds * rounds;
  }

  // The first window takes all phases; each further one comes as much later as the busiest wires, or the longest phase
  // of the one before it, make it wait.
  double makespan(double windows) const {
    double time = 0, interval = 0;
    std::array<double, kKinds> work{};
    for (const Phase& phase : phases_) {
      time += phase.time_ns(windows);
      interval = std::max(interval, phase.time_ns(windows));
      work[phase.kind] += phase.work_ns(windows);
      work[kPosting] += phase.posting_ns;
    }
    return time + (windows - 1) * std::max(interval, *std::ranges::max_element(work));
  }

  const Topology& topology_;
  const FabricView& view_;
  Wires wires_;
  bool by_owner_ = false;  // units belong to ranks
  double units_ = 1;       // that a rank still has its part of, on the way down
  double streams_ = 1;     // of all levels
  std::vector<Phase> phases_;
  Price price_;
};

// Sums inside hosts and rounds across them take turns.
Price FabricPricer::radix(const Question& question, const Radix& shape) {
  const RadixCost cost = mixed_radix_cost(shape, static_cast<double>(question.bytes));
  const Level across{.groups = view_.host_groups()};
  const Level inside{.groups = view_.devices > 1 ? view_.device_groups() : view_.core_groups()};
  for (const auto& [part, level] : {std::pair(&cost.inside, &inside), std::pair(&cost.across, &across)}) {
    if (level->groups[0].size() < 2) continue;
    const Medium medium = medium_of(*level);
    // Radices are spread over the devices: few ranks of a host use one uplink.
    const double busy = *std::ranges::max_element(shape.radices) - 1;
    const double sharing = level == &across ? std::max(1.0, std::ceil(busy / view_.devices)) : 1;
    price_.time_ns += part->steps * (medium.speed.latency_ns + post_ns() + sharing * medium.wire_post_ns) +
                      sharing * part->bytes * 1e9 / medium.speed.bytes_per_second;
    price_.cost += *part;
  }
  price_.roundings = cost.roundings;
  return price_;
}

}  // namespace

Price price_on_fabric(const Topology& topology, const FabricView& view, const Question& question,
                      const MessageAlgorithm& algorithm) {
  FabricPricer pricer(topology, view);
  switch (algorithm.kind) {
    case MessageAlgorithm::Kind::Tree: return price_trees(topology, view, question, {algorithm.tree});
    case MessageAlgorithm::Kind::Trees: return price_trees(topology, view, question, algorithm.trees);
    case MessageAlgorithm::Kind::Radix: return pricer.radix(question, algorithm.radix);
    case MessageAlgorithm::Kind::Pairwise: return price_pairwise(topology, view, question);
    case MessageAlgorithm::Kind::Routed: {
      Question gather = question;
      gather.collective = Collective::AllGather;
      gather.bytes = question.bytes * static_cast<size_t>(topology.nranks());
      return algorithm.tree.parent.empty() ? pricer.staged(gather, algorithm.staged)
                                           : price_trees(topology, view, gather, {algorithm.tree});
    }
    default: return pricer.staged(question, algorithm.staged);
  }
}

}  // namespace ccom
