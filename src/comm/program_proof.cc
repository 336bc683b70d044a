// SPDX-License-Identifier: Apache-2.0
#include "comm/program_proof.h"

#include <array>
#include <vector>

#include "algorithms/node.h"
#include "algorithms/stage_plans.h"
#include "plan/node_verify.h"
#include "plan/program_verify.h"

namespace ccom {

Status prove(const Program& program) { return verify_program(program, {stage_plan, stage_node_plan}).error(); }

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
