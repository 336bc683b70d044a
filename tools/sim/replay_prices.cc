// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/replay_prices.h"

#include <algorithm>

namespace ccom::simtool {
namespace {

// As it is recorded: "node", or "node: two_shot, streamed; readable".
struct RecordedWay {
  std::string algorithm, way;
  Reach reach{.input = true};
};

RecordedWay recorded_way(const std::string& text) {
  RecordedWay found;
  const size_t colon = text.find(": "), end = text.rfind("; ");
  found.algorithm = text.substr(0, colon);
  if (colon == std::string::npos || end == std::string::npos || end < colon) return found;
  found.way = text.substr(colon + 2, end - colon - 2);
  const std::string reach = text.substr(end + 2);
  found.reach = {.input = reach != "private", .output = reach == "mapped"};
  return found;
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double PricedKind::time_ns(const std::vector<double>& early) const {
  double all = 0, late = 0;
  for (size_t rank = 0; rank < first_ns.size() && rank < early.size(); ++rank) {
    all = std::max(all, first_ns[rank]);
    late = std::max(late, first_ns[rank] - early[rank]);
  }
  return together_ns - (all - late);
}

Status PricedKind::predict(const std::optional<NodeCosts>& costs) {
  if (topology->nranks() == 1) return {};
  options.node_costs = costs;
  CCOM_TRY_ASSIGN(const Outcome outcome, simulate_chosen(*topology, what, program, options, true));
  together_ns = outcome.report.time_ns;
  if (program.is_node()) {
    SimOptions with_unit = options;
    with_unit.unit_bytes = what.bytes / largest_units(what.collective, topology->nranks());
    first_ns = ccom::first_ns(*topology, program, with_unit);
  }
  predicted_ns = time_ns(early_ns);
  return {};
}

Status Prices::read(bool predicts) {
  by_call_.clear();
  for (const ReplayCall& call : replay_.calls) {
    const bool as_recorded = machine_.is_recorded && machine_.algorithm.empty();
    const Key key{call.group, call.call.kind, call.call.count, as_recorded ? call.algorithm : ""};
    auto known = kinds_.find(key);
    if (known == kinds_.end()) {
      CCOM_TRY_ASSIGN(PricedKind made, kind_of_call(call));
      known = kinds_.emplace(key, std::move(made)).first;
    }
    PricedKind& kind = known->second;
    ++kind.calls;
    kind.recorded_early_ns.resize(call.parts.size());
    if (call.recorded_ns > 0) kind.recorded_ns.push_back(call.recorded_ns);
    for (size_t rank = 0; call.recorded_ns > 0 && rank < call.parts.size(); ++rank)
      kind.recorded_early_ns[rank].push_back(call.parts[rank].early_ns);
    by_call_.push_back(&kind);
  }
  for (auto& [key, kind] : kinds_) {
    kind.recorded_median_ns = median_of(kind.recorded_ns);
    for (std::vector<double>& early : kind.recorded_early_ns) kind.early_ns.push_back(median_of(std::move(early)));
    if (predicts) CCOM_TRY(kind.predict(machine_.node_costs));
  }
  return {};
}

std::vector<const PricedKind*> Prices::kinds() const {
  std::vector<const PricedKind*> all;
  for (const auto& [key, kind] : kinds_) all.push_back(&kind);
  return all;
}

const Topology* Prices::topology_of(size_t group) {
  const std::vector<Rank>& ranks = replay_.groups[group].ranks;
  if (ranks.size() == machine_.topology.ranks.size()) return &machine_.topology;
  const auto [known, is_new] = parts_.try_emplace(group);
  if (is_new) known->second = part_of(machine_.topology, ranks);
  return &known->second;
}

Result<PricedKind> Prices::kind_of_call(const ReplayCall& call) {
  const CallKind kind = parts_of(call.call.kind);
  PricedKind made;
  made.topology = topology_of(call.group);
  const int nranks = made.topology->nranks();
  const size_t unit = kind.collective == Collective::Barrier ? 0 : call.call.count * size_of(kind.type);
  made.what = {.collective = kind.collective,
               .bytes = unit * largest_units(kind.collective, nranks),
               .algorithm = machine_.algorithm,
               .tiles_messages = true};
  made.options.element_bytes = size_of(kind.type);
  made.what.measured = machine_.measured;
  if (machine_.is_recorded && machine_.algorithm.empty() && !call.algorithm.empty()) {
    const RecordedWay way = recorded_way(call.algorithm);
    made.what.algorithm = way.algorithm;
    made.what.way = way.way;
    made.options.reach = way.reach;
    made.is_recorded_way = !way.way.empty();
  }
  if (nranks == 1) return made;
  Result<Program> program = program_of(*made.topology, made.what, made.options);
  // An algorithm is one of some collectives only; a recorded one may be of a plan file.
  if (!program && !made.what.algorithm.empty()) {
    made.what.algorithm.clear();
    program = program_of(*made.topology, made.what, made.options);
  }
  CCOM_TRY_ASSIGN(made.program, std::move(program));
  return made;
}

}  // namespace ccom::simtool
