// SPDX-License-Identifier: Apache-2.0
#include "planner/user_plans.h"

#include <algorithm>

#include "algorithms/shape.h"
#include "planner/plan_file.h"
#include "planner/program_pricing.h"

namespace ccom {
namespace {

constexpr int kMostRanks = 1024;  // all of whose steps are worth following

// Whatever shape users give messages: by their steps.
Price price_of(const Topology& topology, const Question& question, const Program& program) {
  if (!program.is_messages()) return price_program(topology, question, program).whole;
  if (program.nranks > kMostRanks) return {};
  const MachineView view = machine_view(topology);
  return MessagePricer(topology, view, question).price_by_steps(program.stages[0].messages);
}

}  // namespace

Result<std::optional<Choice>> choose_from_plans(const Topology& topology, const Settings& settings,
                                                const Question& question) {
  const PlanEntry* const entry = find_entry(settings.plans, question, topology.nranks());
  if (entry == nullptr || entry->program.wire() != crosses_as(topology, settings, question))
    return std::optional<Choice>();
  CCOM_TRY(check_hosts(entry->program, topology));
  Choice choice;
  choice.reason = "given by CCOM_PLAN";
  choice.is_users = true;
  Candidate& candidate = choice.candidates.emplace_back();
  candidate.program = entry->program;
  const Price priced = price_of(topology, question, entry->program);
  candidate.steps = priced.cost.steps;
  candidate.bytes = priced.cost.bytes;
  candidate.time_ns = priced.time_ns;
  candidate.parts = priced.parts;
  if (priced.time_ns == 0) candidate.note = "not priced";
  return std::optional(std::move(choice));
}

int channels_of_plans(const Settings& settings) {
  int most = 1;
  for (const PlanEntry& entry : settings.plans) {
    for (const Stage& stage : entry.program.stages) {
      const int lanes = stage.where == Stage::Where::Across ? entry.program.lanes : 1;
      if (stage.where != Stage::Where::Host) most = std::max(most, lanes * channels_of(stage.messages));
    }
  }
  return most;
}

}  // namespace ccom
