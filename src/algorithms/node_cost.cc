// SPDX-License-Identifier: Apache-2.0
#include "algorithms/node_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "algorithms/copy_cost.h"
#include "base/assert.h"

namespace ccom {
namespace {

class Map {
 public:
  explicit Map(std::span<const int> domains) : domains_(domains) {}
  int domain_of(Rank rank) const { return domains_.empty() ? 0 : domains_[static_cast<size_t>(rank)]; }
  bool together(Rank a, Rank b) const { return domain_of(a) == domain_of(b); }

 private:
  std::span<const int> domains_;
};

void count_bytes(const NodePlan& plan, const NodePhase& phase, double unit_bytes, const Map& map, NodeTraffic& sum) {
  for (const NodeStep& step : phase.steps) {
    const double bytes = unit_bytes * step.count / plan.parts;
    const auto touch = [&](const Operand& operand) {
      (map.together(plan.rank, operand.owner) ? sum.local_bytes : sum.remote_bytes) += bytes;
    };
    std::ranges::for_each(step.sources, touch);
    std::ranges::for_each(step.targets, touch);
    if (step.sources.size() > 1) sum.combined_bytes += bytes * static_cast<double>(step.sources.size());
  }
}

// Lines that ranks fetch from one another at the same time: who wants which.
class Fetches {
 public:
  using Line = std::tuple<Area, Rank, uint32_t>;  // the first line of a piece, or of an arrival (as Input)

  void add(Rank reader, const Line& line) {
    if (std::get<Rank>(line) != reader && wanted_[reader].insert(line).second) ++readers_[line];
  }
  double time_ns(const Map& map, const MemoryCosts& costs) const {
    double slowest = 0;
    std::map<int, double> across;  // by domain
    for (const auto& [reader, lines] : wanted_) {
      double latency = 0;
      double further = 0;
      double queue = 0;
      for (const Line& line : lines) {
        const bool local = map.together(reader, std::get<Rank>(line));
        latency = std::max(latency, local ? costs.line_ns : costs.remote_line_ns);
        further += local ? costs.further_line_ns : costs.remote_further_line_ns;
        queue = std::max(queue, costs.reader_ns * (readers_.at(line) - 1));
        if (!local) across[map.domain_of(reader)] += costs.domain_line_ns;
      }
      slowest = std::max(slowest, latency + std::max(further, queue));
    }
    for (const auto& [domain, time] : across) slowest = std::max(slowest, costs.remote_line_ns + time);
    return slowest;
  }

 private:
  std::map<Rank, std::set<Line>> wanted_;
  std::map<Line, int> readers_;
};

// Stretches between which the kernel is called.
constexpr double kReadStride = 128 << 10;

double touched_bytes(std::span<const NodePlan> plans, const NodeExtent& extent) {
  double touched = static_cast<double>(extent.touched_bytes);
  for (const NodePlan& plan : plans) {
    if (extent.touched_bytes == 0)
      touched += static_cast<double>(extent.unit_bytes) * (plan.input_units + plan.output_units);
  }
  return touched;
}

class NodePricer {
 public:
  NodePricer(std::span<const NodePlan> plans, const NodeExtent& extent, const NodeMachine& machine)
      : plans_(plans),
        extent_(extent),
        costs_(machine.costs),
        lines_(machine.lines),
        reused_(machine.reused),
        map_(machine.domains),
        copies_(machine, static_cast<double>(plans.size()), touched_bytes(plans, extent), extent.tiles > 1),
        tile_bytes_(static_cast<double>(extent.unit_bytes) / static_cast<double>(extent.tiles)),
        lies_(copies_.lies()),
        crowding_(copies_.crowding()) {
    for (size_t phase = 0; phase < plans[0].phases.size(); ++phase) readers_.push_back(readers_of_each(phase));
  }

  double time_ns() const {
    const auto tiles = static_cast<double>(extent_.tiles);
    const size_t phases = plans_[0].phases.size();
    double time = costs_.call_ns, longest_barrier = 0;
    // Of several tiles, all phases run at a time, each for another tile.
    if (extent_.tiles > 1) time += tiles * move_ns(0, phases);
    for (size_t phase = 0; phase < phases; ++phase) {
      if (extent_.tiles == 1) time += move_ns(phase, phase + 1);
      if (phase > 0 && extent_.unit_bytes > 0) time += tiles * fetch_ns(phase);
      if (phase + 1 == phases) break;
      const double barrier = barrier_ns(phase);
      longest_barrier = std::max(longest_barrier, barrier);
      time += barrier;
    }
    return time + (tiles - 1) * longest_barrier;
  }

  double first_ns(const NodePlan& plan) const { return work_ns(plan, 0); }

 private:
  // Ranks that read another's buffers in a phase, for each rank whose buffers are read: they begin with different ones.
  double readers_of_each(size_t phase) const {
    std::set<Rank> readers, owners;
    for (const NodePlan& plan : plans_) {
      for (const NodeStep& step : plan.phases[phase].steps) {
        for (const Operand& source : step.sources) {
          if (!is_buffer(source.area) || source.owner == plan.rank) continue;
          readers.insert(plan.rank);
          owners.insert(source.owner);
        }
      }
    }
    return owners.empty() ? 1 : std::max(1.0, static_cast<double>(readers.size()) / static_cast<double>(owners.size()));
  }

  double remote(Rank a, Rank b) const { return map_.together(a, b) ? 1 : costs_.remote_factor; }
  // Has the first phase loaded that piece of the rank's input?
  static bool is_copied_in(const NodePlan& plan, uint32_t piece) {
    return std::ranges::any_of(plan.phases[0].steps, [&](const NodeStep& step) {
      const bool has_piece = piece >= step.source_piece && piece < step.source_piece + step.count;
      return step.sources[0].area == Area::Input && has_piece;
    });
  }

  // What storing or loading bytes takes that pass to another core, as a rule; what was measured of plain lines is a
  // bound, because the rule's first cache may be another processor's.
  double plainly(double as_a_rule_ns, double bytes) const {
    return lines_.plain_ns == 0 ? as_a_rule_ns : std::min(as_a_rule_ns, bytes * lines_.plain_ns / 2);
  }

  // The same of staging memory, in the manner of this way. Two ranks claim results too; of more, several read them.
  double passing(Area area, double as_a_rule_ns, double bytes) const {
    if (area == Area::Output || lines_.plain_ns == 0) return as_a_rule_ns;
    const bool claims = extent_.claims_lines && (area == Area::Stage || plans_.size() == 2);
    if (claims) return bytes * lines_.claimed_ns / 2;
    return extent_.streams_shared ? bytes * lines_.streamed_ns / 2 : plainly(as_a_rule_ns, bytes);
  }

  double load_ns(const NodePlan& plan, size_t phase, const Operand& source, uint32_t piece, double bytes) const {
    if (source.owner == plan.rank) {
      const bool is_second = !is_buffer(source.area) || (phase > 0 && is_copied_in(plan, piece));
      return bytes * (is_second ? costs_.cached_load_ns : copies_.own_load());
    }
    const double factor = remote(plan.rank, source.owner);
    if (!is_buffer(source.area)) return factor * passing(source.area, copies_.shared_load(bytes), bytes);
    const double reused = source.area == Area::Input ? reused_ : 0;
    const double just_stored =
        factor * ((1 - reused) * plainly(copies_.shared_load(bytes), bytes) + reused * bytes * costs_.cached_load_ns);
    if (!extent_.reads) return factor * bytes * (lies_ == Lies::Memory ? costs_.memory_load_ns : costs_.far_load_ns);
    // What is in a cache has just been written there by its rank.
    return (lies_ == Lies::Cached ? just_stored : factor * bytes * costs_.memory_load_ns) +
           bytes * costs_.read_byte_ns * (1 + costs_.read_contention * (readers_[phase] - 1)) +
           std::ceil(bytes / kReadStride) * costs_.read_call_ns;
  }

  // While lines are on their way from other cores a rank loads and combines its own.
  double loads_ns(const NodePlan& plan, size_t phase, const NodeStep& step, double bytes) const {
    double own = 0, foreign = 0;
    for (const Operand& source : step.sources) {
      (source.owner == plan.rank ? own : foreign) += load_ns(plan, phase, source, step.source_piece, bytes);
    }
    if (step.sources.size() > 1) own += bytes * static_cast<double>(step.sources.size()) * costs_.reduced_byte_ns;
    return std::max(own, foreign);
  }

  // `by_kernel`: it copies, and never past the caches.
  double store_ns(const NodePlan& plan, const Operand& target, double bytes, bool by_kernel) const {
    if (by_kernel) return bytes * (lies_ == Lies::Cached ? costs_.cached_store_ns : costs_.memory_store_ns);
    const bool streams = extent_.streams;
    if (target.area == Area::Output && (target.owner == plan.rank || streams))
      return remote(plan.rank, target.owner) * bytes * copies_.own_store(streams);
    return remote(plan.rank, target.owner) * passing(target.area, copies_.shared_store(bytes), bytes);
  }

  double work_ns(const NodePlan& plan, size_t phase) const {
    double time = 0;
    for (const NodeStep& step : plan.phases[phase].steps) {
      const double bytes = tile_bytes_ * step.count / plan.parts;
      time += loads_ns(plan, phase, step, bytes);
      const bool by_kernel = extent_.reads && step.sources.size() == 1 && step.sources[0].owner != plan.rank;
      for (const Operand& target : step.targets) time += store_ns(plan, target, bytes, by_kernel);
    }
    return time;
  }

  // Of the phases from `first` to before `end`, worked on at the same time.
  double move_ns(size_t first, size_t end) const {
    double slowest = 0, all = 0;
    std::map<int, NodeTraffic> together;  // by domain
    for (const NodePlan& plan : plans_) {
      double own = 0;
      for (size_t phase = first; phase < end; ++phase) {
        own += work_ns(plan, phase);
        count_traffic(plan, phase, together[map_.domain_of(plan.rank)]);
      }
      slowest = std::max(slowest, own);
      all += own;
    }
    // Ranks that share a core take turns.
    slowest = std::max(slowest, all * crowding_ / static_cast<double>(plans_.size()));
    if (lies_ != Lies::Memory) return slowest;
    for (const auto& [domain, sum] : together) {
      slowest = std::max(slowest, sum.local_bytes * costs_.domain_byte_ns);
      slowest = std::max(slowest, sum.remote_bytes * costs_.domain_remote_byte_ns);
    }
    return slowest;
  }

  // What passes through memory and between domains: staging memory is in the caches of its own domain. A line is loaded
  // before it is stored to, unless it goes past the caches.
  void count_traffic(const NodePlan& plan, size_t phase, NodeTraffic& sum) const {
    for (const NodeStep& step : plan.phases[phase].steps) {
      const double bytes = tile_bytes_ * step.count / plan.parts;
      const auto touch = [&](const Operand& operand, double times) {
        const bool is_local = map_.together(plan.rank, operand.owner);
        if (is_local && is_buffer(operand.area)) sum.local_bytes += times * bytes;
        if (!is_local) sum.remote_bytes += times * bytes;
      };
      for (const Operand& source : step.sources) touch(source, 1);
      for (const Operand& target : step.targets) touch(target, extent_.streams ? 1 : 2);
    }
  }

  double fetch_ns(size_t phase) const {
    Fetches fetches;
    for (const NodePlan& plan : plans_) {
      for (const NodeStep& step : plan.phases[phase].steps) {
        for (const Operand& source : step.sources) {
          fetches.add(plan.rank, {source.area, source.owner, step.source_piece});
        }
      }
    }
    return fetches.time_ns(map_, costs_);
  }

  double barrier_ns(size_t phase) const {
    Fetches fetches;
    for (const NodePlan& plan : plans_) {
      for (const Rank other : plan.phases[phase].waits_for) fetches.add(plan.rank, {Area::Input, other, 0});
    }
    return costs_.barrier_ns + fetches.time_ns(map_, costs_) + (crowding_ - 1) * costs_.switch_ns;
  }

  const std::span<const NodePlan> plans_;
  const NodeExtent& extent_;
  const MemoryCosts& costs_;
  const LineCosts& lines_;
  const double reused_;
  const Map map_;
  const Copies copies_;
  const double tile_bytes_;
  const Lies lies_;
  const double crowding_;
  std::vector<double> readers_;  // by phase
};

}  // namespace

NodeTraffic traffic_of(const NodePlan& plan, const NodeExtent& extent, std::span<const int> domains) {
  const Map map(domains);
  NodeTraffic traffic;
  traffic.meets = static_cast<double>(tile_slots(plan, extent.tiles) - 1);
  for (const NodePhase& phase : plan.phases) {
    count_bytes(plan, phase, static_cast<double>(extent.unit_bytes), map, traffic);
    if (extent.tiles == 1) traffic.lines += static_cast<double>(phase.waits_for.size());
  }
  // Where tiles follow one another some phase always waits for all.
  if (extent.tiles > 1) traffic.lines = traffic.meets * (plan.nranks - 1);
  return traffic;
}

double node_time_ns(std::span<const NodePlan> plans, const NodeExtent& extent, const NodeMachine& machine) {
  for (const NodePlan& plan : plans) CCOM_ASSERT(plan.phases.size() == plans[0].phases.size());
  return NodePricer(plans, extent, machine).time_ns();
}

std::vector<double> node_first_ns(std::span<const NodePlan> plans, const NodeExtent& extent,
                                  const NodeMachine& machine) {
  const NodePricer pricer(plans, extent, machine);
  std::vector<double> all;
  for (const NodePlan& plan : plans) all.push_back(pricer.first_ns(plan));
  return all;
}

}  // namespace ccom
