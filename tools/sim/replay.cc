// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/replay.h"

#include <algorithm>
#include <map>

#include "plan/print.h"
#include "planner/node_machine.h"
#include "tools/sim/replay_prices.h"

namespace ccom::simtool {
namespace {

std::string text_of_program(const PricedKind& kind) {
  const bool is_named = kind.is_recorded_way && kind.program.is_node();
  return kind.program.algorithm + (is_named ? ": " + to_text(kind.program.stages[0].node) : "");
}

// Kinds that differ in the way they run alone are one.
std::vector<ReplayedKind> kinds_of(const Prices& prices) {
  std::map<std::pair<Collective, size_t>, std::vector<const PricedKind*>> alike;
  for (const PricedKind* const kind : prices.kinds()) alike[{kind->what.collective, kind->what.bytes}].push_back(kind);
  std::vector<ReplayedKind> all;
  for (auto& [key, kinds] : alike) {
    const PricedKind& most = **std::ranges::max_element(kinds, {}, &PricedKind::calls);
    ReplayedKind found{key.first, key.second, text_of_program(most), 0, 0, 0};
    std::vector<double> recorded, predicted;
    for (const PricedKind* const kind : kinds) {
      found.calls += kind->calls;
      recorded.insert(recorded.end(), kind->recorded_ns.begin(), kind->recorded_ns.end());
      predicted.insert(predicted.end(), kind->calls, kind->predicted_ns);
    }
    found.recorded_ns = median_of(std::move(recorded));
    found.predicted_ns = median_of(std::move(predicted));
    all.push_back(std::move(found));
  }
  std::ranges::sort(all, std::greater<>(),
                    [](const ReplayedKind& kind) { return kind.predicted_ns * static_cast<double>(kind.calls); });
  return all;
}

}  // namespace

Result<Replayed> run_replay(const Replay& replay, const ReplayMachine& machine) {
  Prices prices(replay, machine);
  CCOM_TRY(prices.read());
  Replayed result;
  std::vector<double> ends(replay.calls.size()), ratios;
  for (size_t i = 0; i < replay.calls.size(); ++i) {
    const ReplayCall& call = replay.calls[i];
    const double before = call.follows < 0 ? 0 : ends[static_cast<size_t>(call.follows)];
    double begin = before;
    std::vector<double> comings;
    for (const ReplayCall::Part& part : call.parts) {
      // Waiting for the turn behind a call of another thread is no waiting for ranks.
      comings.push_back(std::max(before, (part.after < 0 ? 0 : ends[static_cast<size_t>(part.after)]) + part.gap_ns));
      begin = std::max(begin, comings.back());
    }
    std::vector<double> early;
    for (const double coming : comings) early.push_back(begin - coming);
    const double call_ns = prices.of(i).time_ns(early);
    ends[i] = begin + call_ns;
    result.whole_ns = std::max(result.whole_ns, ends[i]);
    for (const double coming : comings) {
      result.in_calls_ns += ends[i] - coming;
      result.waiting_ns += begin - coming;
    }
    if (call.recorded_ns <= 0) continue;
    ratios.push_back(call_ns / call.recorded_ns);
    result.calls_ns += call_ns;
    result.recorded_calls_ns += call.recorded_ns;
    const double median_ns = prices.of(i).recorded_median_ns;
    if (call.recorded_ns <= kDisturbed * median_ns) continue;
    result.disturbed_ns += call.recorded_ns - median_ns;
    ++result.disturbed_calls;
  }
  result.in_calls_ns /= static_cast<double>(std::max<size_t>(1, replay.processes));
  result.waiting_ns /= static_cast<double>(std::max<size_t>(1, replay.processes));
  result.kinds = kinds_of(prices);
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

Status use_measured(ReplayMachine& machine, const RecordedJob& job) {
  machine.is_recorded = true;
  const RecordedGroup& widest = job.groups.front();
  if (widest.costs.empty()) return {};
  CCOM_TRY_ASSIGN(machine.measured, measured_costs_from_json(widest.costs));
  const HostMachine host(machine.topology, 0, *machine.measured);
  machine.node_costs = NodeCosts{host.machine.costs, host.machine.lines};
  return {};
}

void speed_up(ReplayMachine& machine, double factor) {
  Topology& topology = machine.topology;
  const auto faster = [factor](LinkSpeed& speed) { speed.bytes_per_second *= factor; };
  faster(topology.memory);
  faster(topology.network);
  topology.network_costs.flow_byte_ns /= factor;
  if (!machine.node_costs) machine.node_costs = NodeCosts{topology.memory_costs, {}};
  // What passes to other cores, and memory; not a core's own caches.
  for (const auto cost :
       {&MemoryCosts::far_load_ns, &MemoryCosts::far_store_ns, &MemoryCosts::memory_load_ns,
        &MemoryCosts::memory_store_ns, &MemoryCosts::streamed_store_ns, &MemoryCosts::shared_load_ns,
        &MemoryCosts::shared_store_ns, &MemoryCosts::long_shared_load_ns, &MemoryCosts::long_shared_store_ns,
        &MemoryCosts::domain_byte_ns, &MemoryCosts::domain_remote_byte_ns})
    machine.node_costs->memory.*cost /= factor;
  for (const auto cost : {&LineCosts::plain_ns, &LineCosts::claimed_ns, &LineCosts::streamed_ns})
    machine.node_costs->lines.*cost /= factor;
  for (Host& host : topology.hosts) {
    for (Nic& nic : host.nics) nic.bytes_per_second *= factor;
    if (!host.imposed) continue;
    faster(host.imposed->inside_device);
    for (Link& link : host.imposed->links) faster(link.speed);
    for (Uplink& uplink : host.imposed->uplinks) faster(uplink.speed);
  }
}

}  // namespace ccom::simtool
