// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/cases.h"

#include <chrono>

#include "algorithms/stage_plans.h"

namespace ccom::simtool {
namespace {

Question question_of(const Case& what) {
  return {.collective = what.collective, .bytes = what.bytes, .root = is_rooted(what.collective) ? 0 : -1};
}

// Do all hosts have the same devices and the same number of ranks, host after host?
bool hosts_alike(const Topology& topology) {
  const size_t per_host = topology.ranks.size() / topology.hosts.size();
  for (size_t rank = 0; rank < topology.ranks.size(); ++rank) {
    const Place& place = topology.ranks[rank];
    if (place.host != static_cast<int>(rank / per_host) || place.local != static_cast<int>(rank % per_host))
      return false;
  }
  for (const Host& host : topology.hosts) {
    if (host.imposed != topology.hosts[0].imposed) return false;
  }
  return per_host * topology.hosts.size() == topology.ranks.size();
}

Result<SimReport> simulate_folded_if_possible(const Topology& topology, const PlanSource& plan_of, SimOptions& options,
                                              bool fold) {
  options.fold_hosts = fold && topology.hosts.size() > 1 && options.faults.empty() && options.traced_ranks.empty() &&
                       hosts_alike(topology);
  Result<SimReport> report = simulate(topology, plan_of, options);
  if (report || !options.fold_hosts || report.error().code() != Code::NotSupported) return report;
  options.fold_hosts = false;
  return simulate(topology, plan_of, options);
}

}  // namespace

Result<std::vector<std::string>> legal_algorithms(const Topology& topology, const Case& what) {
  CCOM_TRY_ASSIGN(const Choice choice, choose(topology, {}, question_of(what)));
  std::vector<std::string> names;
  for (const Candidate& candidate : choice.candidates) {
    if (candidate.legal) names.push_back(candidate.program.algorithm);
  }
  return names;
}

Result<Outcome> simulate_case(const Topology& topology, const Case& what, SimOptions options, bool fold) {
  if (what.collective == Collective::SendReceive)
    return error(Code::NotSupported, "simulate sendrecv: its two ranks are the call's choice");
  const Question question = question_of(what);
  CCOM_TRY_ASSIGN(const Choice choice, choose(topology, {.forced = what.algorithm}, question));
  std::string free_choice = choice.program().algorithm;
  if (!what.algorithm.empty()) {
    CCOM_TRY_ASSIGN(const Choice free, choose(topology, {}, question));
    free_choice = free.program().algorithm;
  }
  const Candidate& candidate = choice.candidates[choice.chosen];
  if (!candidate.program.is_messages()) {
    return error(Code::NotSupported, "simulate %s: it uses memory instead of messages",
                 candidate.program.algorithm.c_str());
  }
  const auto begin = std::chrono::steady_clock::now();
  options.unit_bytes = what.bytes / largest_units(what.collective, topology.nranks());
  if (options.unit_bytes < options.element_bytes) options.element_bytes = std::max<size_t>(options.unit_bytes, 1);
  const PlanSource plan_of =
      message_plans(candidate.program.stages[0].messages, what.collective, topology.nranks(), question.root);
  Outcome outcome;
  outcome.what = what;
  outcome.algorithm = candidate.program.algorithm;
  outcome.chosen = free_choice == candidate.program.algorithm;
  outcome.expected_ns = candidate.time_ns;
  outcome.bound = lower_bound(topology, question);
  CCOM_TRY_ASSIGN(outcome.report, simulate_folded_if_possible(topology, plan_of, options, fold));
  outcome.folded = options.fold_hosts;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

}  // namespace ccom::simtool
