// SPDX-License-Identifier: Apache-2.0
#include "planner/user_plans.h"

#include <algorithm>

#include "algorithms/shape.h"
#include "planner/plan_file.h"
#include "planner/program_pricing.h"

namespace ccom {
namespace {

// Plans step by step have no closed form.
bool is_priced(const Program& program) {
  return std::ranges::none_of(program.stages, [](const Stage& stage) {
    return stage.messages.kind == MessageAlgorithm::Kind::Explicit;
  });
}

}  // namespace

Result<std::optional<Choice>> choose_from_plans(const Topology& topology, const Settings& settings,
                                                const Question& question) {
  const PlanEntry* const entry = find_entry(settings.plans, question, topology.nranks());
  if (entry == nullptr) return std::optional<Choice>();
  CCOM_TRY(check_hosts(entry->program, topology));
  Choice choice;
  choice.reason = "given by CCOM_PLAN";
  choice.is_users = true;
  Candidate& candidate = choice.candidates.emplace_back();
  candidate.program = entry->program;
  if (is_priced(entry->program) && !entry->program.is_messages()) {
    candidate.time_ns = price_program(topology, question, entry->program).whole.time_ns;
  } else {
    candidate.note = "not priced: ccom-sim times it";
  }
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
