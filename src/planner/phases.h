// SPDX-License-Identifier: Apache-2.0
//
// Room-private: the phases of a call, as message_pricer.h prices them.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "algorithms/cost.h"
#include "algorithms/level_rounds.h"
#include "algorithms/streams.h"
#include "planner/message_pricer.h"
#include "planner/phase.h"

namespace ccom {

// Swing's streams use all links in every step only while they keep in step, which windows do not. Fitted to simulations
// of 8 to 640 hosts of 4 x 4 devices, as are the others: rings, and direct exchanges of single units.
inline constexpr double kWindowedSwing = 1.7;
inline constexpr double kWindowedSwingOfUnits = 2.6;
inline constexpr double kWindowedRings = 1.4;
inline constexpr double kWindowedUnitsDown = 1.15;
inline constexpr double kWindowedUnitsUp = 1.7;

// Messages beyond the first that a rank starts before it can wait: streams overlap theirs with waiting, but for once.
inline double posts_waited_for(const Level& level, const Cost& cost) {
  return stream_count(level) > 1 ? cost.steps + cost.posts / std::max(cost.steps, 1.0) - 1 : cost.posts;
}

// Units go on as they come, so that streams do not keep in step and get into each other's way. Fitted to simulations of
// 4 x 4 and 8 x 8.
inline double drift(const Level& level) { return std::clamp(1 + 0.0055 * (level.owners - 16), 1.0, 1.4); }

// A call's phases.
class Phases {
 public:
  explicit Phases(const Mediums& mediums) : mediums_(mediums), view_(mediums.view()) {}

  void add(const Cost& cost, const Medium& medium) {
    add(cost, medium, cost.bytes * medium.byte_ns() * medium.longer());
  }

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
    by_owner_ = collective != Collective::AllReduce && !shape.by_position;
    if (shape.by_position) permuted_bytes_ = n;
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

  // Of an AllToAll along the levels' dimensions. Streams use all dimensions of a torus at a time, each with its share
  // of what a rank has. Everything is permuted before each dimension, and in the end.
  void add_exchange(double n, const Staged& shape) {
    permuted_bytes_ = n;
    for (const Level& level : shape.levels) {
      const bool is_torus = level.pattern == Pattern::Torus;
      const std::vector<int> dims = is_torus ? level.dims : std::vector<int>{level.owners};
      const auto streams = static_cast<double>(dims.size());
      Cost sum;
      double longest_ns = 0;
      for (size_t d = 0; d < dims.size(); ++d) {
        permuted_bytes_ += dims[d] > 1 ? n : 0;
        const bool is_ring = is_torus || level.pattern == Pattern::Ring;
        const Cost cost = is_ring ? ring_exchange_cost(dims[d], n) : direct_allgather_cost(dims[d], n);
        const double byte_ns = is_torus ? 1e9 / view_.dim_speeds[d].bytes_per_second : 0;
        longest_ns = std::max(longest_ns, cost.bytes * byte_ns);
        sum += {cost.steps, cost.posts * streams, cost.bytes / streams, 0};
      }
      if (level.owners < 2) continue;
      const Medium medium = mediums_.of(level, sum.bytes / std::max(sum.posts, 1.0));
      Phase& phase = add(sum, medium, is_torus ? longest_ns : transfer_ns(level, medium, sum, n));
      phase.latency_ns = sum.steps * medium.latency_ns + sum.posts / std::max(sum.steps, 1.0) * medium.post_ns;
      phase.least_wire_ns = sum.posts * medium.wire_post_ns;
      phase.posting_ns = sum.posts * medium.post_ns;
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
    if (permuted_bytes_ > 0) price.add(Medium::kPorts, 0, permuted_bytes_ * mediums_.reduce_ns());
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
    // A circulant message of several positions that wrap around the end of the list leaves as two.
    const double split = level.pattern == Pattern::Circulant ? cost.steps - 1 : 0;
    const double posts =
        std::max((cost.posts + split) * pieces_, by_owner_ ? units_ * (1 - 1.0 / level.owners) * streams_ : 0);
    phase.least_wire_ns = posts * medium.wire_post_ns;
    phase.posting_ns = posts * medium.post_ns;
    phase.stretch = stretch_of(level, medium.kind, down);
    // The host whose positions wrap around in every round sends last, and in an allgather the next round waits for it.
    // Fitted to simulations of 16 to 64 hosts: 0.25 to 0.85.
    constexpr double kWaitsForWrap = 0.5;
    if (!down && split > 0) phase.latency_ns += kWaitsForWrap * phase.sharing * phase.wire_ns(1);
  }

  double stretch_of(const Level& level, Medium::Kind kind, bool down) const {
    if (level.pattern == Pattern::Swing) return by_owner_ || down ? kWindowedSwingOfUnits : kWindowedSwing;
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
    double bytes = cost.bytes * medium.longer();
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
  bool by_owner_ = false;  // units belong to ranks, and each travels in messages of its own
  double permuted_bytes_ = 0;
  double units_ = 1;    // that a rank still has its part of, on the way down
  double streams_ = 1;  // of all levels
  double pieces_ = 1;   // runs of data, each a message of its own, that the streams of the levels above leave
  std::vector<Phase> phases_;
  Price total_;  // without its time
};

}  // namespace ccom
