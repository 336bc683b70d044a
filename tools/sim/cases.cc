// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/cases.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "algorithms/shape.h"
#include "algorithms/stage_plans.h"
#include "algorithms/streams.h"
#include "plan/print.h"
#include "plan/program_verify.h"

namespace ccom::simtool {
namespace {

Settings settings_for(const Case& what) { return {.forced = what.algorithm, .shared_memory = true}; }

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

Result<SimReport> simulate_folded_if_possible(const Topology& topology, const Program& program, SimOptions& options,
                                              bool fold) {
  options.fold_hosts = fold && program.is_messages() && topology.hosts.size() > 1 && options.faults.empty() &&
                       options.traced_ranks.empty() && hosts_alike(topology);
  Result<SimReport> report = simulate_program(topology, program, options);
  if (report || !options.fold_hosts || report.error().code() != Code::NotSupported) return report;
  options.fold_hosts = false;
  return simulate_program(topology, program, options);
}

Result<std::vector<double>> simulate_with_noise(const Topology& topology, const Program& program, SimOptions options,
                                                Noise noise, int runs) {
  std::vector<double> times_ns;
  options.fold_hosts = options.keep_intervals = false;
  options.traced_ranks.clear();
  for (int run = 0; run < runs && !noise.empty(); ++run, ++noise.seed) {
    options.noise = noise;
    CCOM_TRY_ASSIGN(const SimReport report, simulate_program(topology, program, options));
    times_ns.push_back(report.time_ns);
  }
  std::ranges::sort(times_ns);
  return times_ns;
}

// Windows and streams as the case asks for.
Status restrict_staged(const Case& what, Staged& staged) {
  if (what.windows > 0) staged.windows = what.windows;
  for (auto* levels : {&staged.levels, &staged.core}) {
    for (Level& level : *levels) {
      if (what.streams <= 0 || level.dims.empty() || level.pattern == Pattern::Rings) continue;
      level.streams = streams_of(level);
      if (level.streams.size() > static_cast<size_t>(what.streams))
        level.streams.resize(static_cast<size_t>(what.streams));
    }
  }
  if (channels_of(staged) <= kMostChannels) return {};
  return error(Code::ConfigError, "simulate %d windows: %d channels between two ranks are too many", staged.windows,
               channels_of(staged));
}

Result<Outcome> simulate(const Topology& topology, const Case& what, const Program& chosen, SimOptions options,
                         bool fold) {
  const auto begin = std::chrono::steady_clock::now();
  Program program = chosen;
  if (program.is_messages() && !what.tiles_messages) program.tile_bytes = 0;
  if (program.is_messages() && program.stages[0].messages.kind == MessageAlgorithm::Kind::Staged) {
    CCOM_TRY(restrict_staged(what, program.stages[0].messages.staged));
  }
  options.unit_bytes = what.bytes / largest_units(what.collective, topology.nranks());
  if (options.unit_bytes < options.element_bytes) options.element_bytes = std::max<size_t>(options.unit_bytes, 1);
  Outcome outcome;
  outcome.what = what;
  outcome.bound = lower_bound(topology, question_of(what), !program.is_messages());
  const Noise noise = std::exchange(options.noise, {});
  CCOM_TRY_ASSIGN(outcome.report, simulate_folded_if_possible(topology, program, options, fold));
  outcome.program = chosen;
  outcome.folded = options.fold_hosts;
  CCOM_TRY_ASSIGN(outcome.noisy_ns, simulate_with_noise(topology, program, options, noise, what.noisy_runs));
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

Program with_way(const Topology& topology, const Case& what, const SimOptions& options, Program program) {
  if (!what.measured || !program.is_node()) return program;
  Stage& stage = program.stages[0];
  const std::vector<NodeChoice> ways = node_ways(topology, program, stage, what.measured->lines);
  const auto named = std::ranges::find(ways, what.way, [](const NodeChoice& way) { return to_text(way); });
  if (named != ways.end()) {
    stage.node = *named;
    return program;
  }
  const size_t unit_bytes = what.bytes / largest_units(what.collective, topology.nranks());
  stage.node = ways[expected_ways(topology, 0, *what.measured, node_task(program, stage, 0), ways, unit_bytes,
                                  options.reach.output)
                        .first];
  return program;
}

}  // namespace

std::string text_of(const Case& what) {
  return std::string(name_of(what.collective)) + " of " + std::to_string(what.bytes) + " bytes";
}

Question question_of(const Case& what) {
  return {.collective = what.collective,
          .bytes = what.bytes,
          .root = is_rooted(what.collective) ? 0 : -1,
          .order = reduces(what.collective) ? what.order : SumOrder::Any};
}

Result<Program> program_of(const Topology& topology, const Case& what, const SimOptions& options) {
  if (what.collective == Collective::SendReceive)
    return error(Code::NotSupported, "sendrecv has no program: its two ranks are the call's choice");
  CCOM_TRY_ASSIGN(const Choice choice, choose(topology, settings_for(what), question_of(what)));
  return with_way(topology, what, options, choice.program());
}

Result<Outcome> simulate_chosen(const Topology& topology, const Case& what, const Program& program,
                                const SimOptions& options, bool fold) {
  return simulate(topology, what, program, options, fold);
}

Result<std::vector<std::string>> legal_algorithms(const Topology& topology, const Case& what) {
  CCOM_TRY_ASSIGN(const Choice choice, choose(topology, settings_for({}), question_of(what)));
  std::vector<std::string> names;
  for (const Candidate& candidate : choice.candidates) {
    if (candidate.legal) names.push_back(candidate.program.algorithm);
  }
  return names;
}

Result<Outcome> simulate_case(const Topology& topology, const Case& what, const SimOptions& options, bool fold) {
  if (what.collective == Collective::SendReceive) return simulate_transfers(topology, what, options);
  const Question question = question_of(what);
  CCOM_TRY_ASSIGN(const Choice choice, choose(topology, settings_for(what), question));
  const Candidate& candidate = choice.candidates[choice.chosen];
  CCOM_TRY_ASSIGN(Outcome outcome, simulate(topology, what, candidate.program, options, fold));
  outcome.expected_ns = candidate.time_ns;
  outcome.chosen = true;
  if (!what.algorithm.empty()) {
    CCOM_TRY_ASSIGN(const Choice free, choose(topology, settings_for({}), question));
    outcome.chosen = free.program().algorithm == candidate.program.algorithm;
  }
  return outcome;
}

Result<std::optional<Outcome>> simulate_given(const Topology& topology, const Case& what,
                                              const std::vector<PlanEntry>& plans, const SimOptions& options,
                                              bool fold) {
  Settings settings = settings_for({});
  settings.plans = plans;
  CCOM_TRY_ASSIGN(const Choice choice, choose(topology, settings, question_of(what)));
  if (!choice.is_users) return std::optional<Outcome>();
  const Result<ProgramReport> proof = verify_program(choice.program(), {stage_plan, stage_node_plan});
  if (!proof) return proof.error();
  CCOM_TRY_ASSIGN(Outcome outcome, simulate(topology, what, choice.program(), options, fold));
  outcome.expected_ns = choice.candidates[choice.chosen].time_ns;
  return std::optional(std::move(outcome));
}

}  // namespace ccom::simtool
