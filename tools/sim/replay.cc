// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/replay.h"

#include <algorithm>
#include <tuple>

#include "tools/sim/cases.h"

namespace ccom::simtool {
namespace {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Simulates each kind of call once.
class Prices {
 public:
  Prices(const Replay& replay, const ReplayMachine& machine) : replay_(replay), machine_(machine) {}

  struct Price {
    Collective collective = Collective::AllReduce;
    size_t bytes = 0;
    double ns = 0;
    std::string algorithm;
    std::vector<double> recorded;
    size_t calls = 0;
  };
  Result<Price*> of(const ReplayCall& call) {
    const auto [known, is_new] = prices_.try_emplace({call.group, call.call.kind, call.call.count});
    Price& price = known->second;
    if (is_new) CCOM_TRY(simulate(call, price));
    ++price.calls;
    if (call.recorded_ns > 0) price.recorded.push_back(call.recorded_ns);
    return &price;
  }
  std::vector<ReplayedKind> kinds() const {
    std::vector<ReplayedKind> all;
    for (const auto& [key, price] : prices_)
      all.push_back({price.collective, price.bytes, price.algorithm, price.calls, median_of(price.recorded), price.ns});
    std::ranges::sort(all, std::greater<>(),
                      [](const ReplayedKind& kind) { return kind.predicted_ns * static_cast<double>(kind.calls); });
    return all;
  }

 private:
  Result<const Topology*> topology_of(size_t group) {
    const std::vector<Rank>& ranks = replay_.groups[group].ranks;
    if (ranks.size() == machine_.topology.ranks.size()) return &machine_.topology;
    const auto [known, is_new] = parts_.try_emplace(group);
    if (is_new) known->second = part_of(machine_.topology, ranks);
    return &known->second;
  }

  Status simulate(const ReplayCall& call, Price& price) {
    const CallKind kind = parts_of(call.call.kind);
    CCOM_TRY_ASSIGN(const Topology* const topology, topology_of(call.group));
    price.collective = kind.collective;
    const size_t unit = kind.collective == Collective::Barrier ? 0 : call.call.count * size_of(kind.type);
    price.bytes = unit * largest_units(kind.collective, topology->nranks());
    if (topology->nranks() == 1) return {};
    SimOptions options;
    options.element_bytes = size_of(kind.type);
    Result<Outcome> outcome =
        simulate_case(*topology, {kind.collective, price.bytes, machine_.algorithm, true}, options, true);
    // The algorithm is one of some collectives only.
    if (!outcome && !machine_.algorithm.empty())
      outcome = simulate_case(*topology, {kind.collective, price.bytes, "", true}, options, true);
    if (!outcome) return std::move(outcome).error();
    price.ns = outcome->report.time_ns;
    price.algorithm = outcome->program.algorithm;
    return {};
  }

  const Replay& replay_;
  const ReplayMachine& machine_;
  std::map<std::tuple<size_t, uint64_t, uint64_t>, Price> prices_;
  std::map<size_t, Topology> parts_;
};

}  // namespace

Result<Replayed> run_replay(const Replay& replay, const ReplayMachine& machine) {
  Prices prices(replay, machine);
  Replayed result;
  std::vector<double> ends(replay.calls.size()), ratios;
  for (size_t i = 0; i < replay.calls.size(); ++i) {
    const ReplayCall& call = replay.calls[i];
    CCOM_TRY_ASSIGN(const Prices::Price* const price, prices.of(call));
    const double before = call.follows < 0 ? 0 : ends[static_cast<size_t>(call.follows)];
    double begin = before;
    std::vector<double> comings;
    for (const ReplayCall::Part& part : call.parts) {
      // Waiting for the turn behind a call of another thread is no waiting for ranks.
      comings.push_back(std::max(before, (part.after < 0 ? 0 : ends[static_cast<size_t>(part.after)]) + part.gap_ns));
      begin = std::max(begin, comings.back());
    }
    ends[i] = begin + price->ns;
    result.whole_ns = std::max(result.whole_ns, ends[i]);
    for (const double coming : comings) {
      result.in_calls_ns += ends[i] - coming;
      result.waiting_ns += begin - coming;
    }
    if (call.recorded_ns > 0) ratios.push_back(price->ns / call.recorded_ns);
  }
  result.in_calls_ns /= static_cast<double>(std::max<size_t>(1, replay.processes));
  result.waiting_ns /= static_cast<double>(std::max<size_t>(1, replay.processes));
  result.kinds = prices.kinds();
  result.median_ratio = median_of(std::move(ratios));
  return result;
}

Result<Topology> recorded_topology(const RecordedJob& job) {
  const RecordedGroup& widest = job.groups.front();
  if (widest.topology.empty())
    return error(Code::InvalidArgument, "the recordings do not say what machine it was: its description found no room")
        .with_cure("name one by --on, or record with a larger CCOM_RECORD_BYTES");
  return topology_from_json(widest.topology);
}

void speed_up(Topology& topology, double factor) {
  const auto faster = [factor](LinkSpeed& speed) { speed.bytes_per_second *= factor; };
  faster(topology.memory);
  faster(topology.network);
  topology.network_costs.flow_byte_ns /= factor;
  for (Host& host : topology.hosts) {
    for (Nic& nic : host.nics) nic.bytes_per_second *= factor;
    if (!host.imposed) continue;
    faster(host.imposed->inside_device);
    for (Link& link : host.imposed->links) faster(link.speed);
    for (Uplink& uplink : host.imposed->uplinks) faster(uplink.speed);
  }
}

}  // namespace ccom::simtool
