// SPDX-License-Identifier: Apache-2.0
#include "planner/node_cost.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

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
  double time_ns(const Map& map, const NodePrices& prices) const {
    double slowest = 0;
    std::map<int, double> across;  // by domain
    for (const auto& [reader, lines] : wanted_) {
      double latency = 0;
      double further = 0;
      double queue = 0;
      for (const Line& line : lines) {
        const bool local = map.together(reader, std::get<Rank>(line));
        latency = std::max(latency, local ? prices.local_latency : prices.remote_latency);
        further += local ? prices.local_line : prices.remote_line;
        queue = std::max(queue, prices.reader * (readers_.at(line) - 1));
        if (!local) across[map.domain_of(reader)] += prices.domain_remote_line;
      }
      slowest = std::max(slowest, latency + std::max(further, queue));
    }
    for (const auto& [domain, time] : across) slowest = std::max(slowest, prices.remote_latency + time);
    return slowest;
  }

 private:
  std::map<Rank, std::set<Line>> wanted_;
  std::map<Line, int> readers_;
};

double move_time_ns(std::span<const NodePlan> plans, size_t phase, double unit_bytes, const Map& map,
                    const NodePrices& prices) {
  double slowest = 0;
  std::map<int, NodeTraffic> together;  // by domain
  for (const NodePlan& plan : plans) {
    NodeTraffic own;
    count_bytes(plan, plan.phases[phase], unit_bytes, map, own);
    slowest = std::max(slowest, own.local_bytes * prices.local_byte + own.remote_bytes * prices.remote_byte);
    NodeTraffic& sum = together[map.domain_of(plan.rank)];
    sum.local_bytes += own.local_bytes;
    sum.remote_bytes += own.remote_bytes;
  }
  for (const auto& [domain, sum] : together) {
    slowest =
        std::max({slowest, sum.local_bytes * prices.domain_local_byte, sum.remote_bytes * prices.domain_remote_byte});
  }
  return slowest;
}

double fetch_time_ns(std::span<const NodePlan> plans, size_t phase, const Map& map, const NodePrices& prices) {
  Fetches fetches;
  for (const NodePlan& plan : plans) {
    for (const NodeStep& step : plan.phases[phase].steps) {
      for (const Operand& source : step.sources) fetches.add(plan.rank, {source.area, source.owner, step.source_piece});
    }
  }
  return fetches.time_ns(map, prices);
}

double meet_time_ns(std::span<const NodePlan> plans, size_t phase, const Map& map, const NodePrices& prices) {
  Fetches fetches;
  for (const NodePlan& plan : plans) {
    for (const Rank other : plan.phases[phase].waits_for) fetches.add(plan.rank, {Area::Input, other, 0});
  }
  return fetches.time_ns(map, prices);
}

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

double node_time_ns(std::span<const NodePlan> plans, const NodeExtent& extent, std::span<const int> domains,
                    const NodePrices& prices) {
  const Map map(domains);
  const size_t phases = plans[0].phases.size();
  for (const NodePlan& plan : plans) CCOM_ASSERT(plan.phases.size() == phases);
  double time_ns = 0;
  double longest_meet = 0;
  for (size_t phase = 0; phase < phases; ++phase) {
    time_ns += move_time_ns(plans, phase, static_cast<double>(extent.unit_bytes), map, prices);
    if (phase > 0 && extent.unit_bytes > 0) time_ns += fetch_time_ns(plans, phase, map, prices);
    if (phase + 1 == phases) break;
    const double meet = meet_time_ns(plans, phase, map, prices);
    longest_meet = std::max(longest_meet, meet);
    time_ns += meet;
  }
  return time_ns + static_cast<double>(extent.tiles - 1) * longest_meet;
}

}  // namespace ccom
