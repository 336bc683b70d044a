// SPDX-License-Identifier: Apache-2.0
#include "comm/program_proof.h"

#include <array>
#include <string>
#include <vector>

#include "algorithms/node.h"
#include "algorithms/stage_plans.h"
#include "plan/node_verify.h"
#include "plan/program_verify.h"

namespace ccom {

Status prove(const Program& program, const Question& asked) {
  CCOM_TRY_ASSIGN(const ProgramReport report, verify_program(program, {stage_plan, stage_node_plan}));
  const char* why = nullptr;
  if (report.order < asked.order) {
    why = asked.order == SumOrder::Canonical
              ? "was chosen for determinism=full, but does not combine all contributions at once"
              : "was chosen for an operator that is not commutative, but changes the order";
  } else if (asked.rounds_once && report.max_roundings > 1) {
    why = "was chosen to round once, but rounds more often";
  } else if (report.max_encodings > 2) {
    why = "encodes a number more than twice, on its way and as a sum";
  }
  if (why == nullptr) return {};
  return error(Code::InternalError, "%s %s %s", std::string(name_of(program.collective)).c_str(),
               program.algorithm.c_str(), why);
}

namespace {

Status refuse_order(const Program& program, SumOrder order) {
  const std::string collective(name_of(program.collective));
  if (order == SumOrder::Canonical) {
    return error(Code::ConfigError,
                 "CCOM_PLAN: %s %s does not combine all contributions at once in rank order, as determinism=full "
                 "asks",
                 collective.c_str(), program.algorithm.c_str())
        .with_cure("correct the plan file, unset CCOM_PLAN, or use determinism=shape (CCOM_DETERMINISM)");
  }
  return error(Code::ConfigError,
               "CCOM_PLAN: %s %s does not combine contributions in rank order; the operator is not commutative",
               collective.c_str(), program.algorithm.c_str())
      .with_cure("correct the plan file, unset CCOM_PLAN, or create the operator as commutative if it is");
}

}  // namespace

Status prove_users(const Program& program, const Question& asked, int allowed_roundings) {
  const Result<ProgramReport> report = verify_program(program, {stage_plan, stage_node_plan});
  if (!report) {
    return error(Code::ConfigError, "CCOM_PLAN: the program does not do what its collective promises: %s",
                 report.error().message().c_str())
        .with_cure("correct the plan file, or unset CCOM_PLAN");
  }
  if (report->order < asked.order) return refuse_order(program, asked.order);
  if (!asked.narrow_float || report->max_roundings <= allowed_roundings) return {};
  return error(Code::ConfigError, "CCOM_PLAN: %s %s rounds a sum %d times; for types of 16 and 8 bits %d are promised",
               std::string(name_of(program.collective)).c_str(), program.algorithm.c_str(), report->max_roundings,
               allowed_roundings)
      .with_cure("correct the plan file, or unset CCOM_PLAN");
}

// Two calls of several tiles, so that staging banks are used again. Out of place: whether other ranks call in place is
// not known here, and where it matters (alltoall) such an input is not shown; prove() has had both.
Status prove_reach(const NodeTask& task, const NodeChoice& choice, std::span<const Reach> reach) {
  std::vector<NodePlan> plans;
  for (Rank rank = 0; rank < task.nranks; ++rank) {
    plans.push_back(node_plan(task, rank, false, choice.shape_for(reach), reach));
  }
  const size_t tiles = plans[0].staged ? 3 : 1;
  const std::array calls = {NodeCallPlans{task, plans, tiles}, NodeCallPlans{task, plans, tiles}};
  return verify_node(calls).error();
}

}  // namespace ccom
