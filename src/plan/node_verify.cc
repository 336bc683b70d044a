// SPDX-License-Identifier: Apache-2.0
#include "plan/node_verify.h"

#include <algorithm>
#include <map>
#include <string>

#include "plan/node_world.h"

namespace ccom {
namespace {

// What a rank puts in of a block.
Value contribution(Rank rank, uint32_t block) {
  return leaf(mix(mix(static_cast<uint64_t>(rank) << 40) + block) % kPrime, 0, rank);
}

Status defect(const NodePlan& plan, const char* what) {
  return error(Code::InternalError, "%s, %s of %d ranks, rank %d: %s", plan.algorithm.c_str(),
               std::string(name_of(plan.collective)).c_str(), plan.nranks, plan.rank, what);
}

Status check_results(const NodeCallPlans& call, const UnitValues& outputs, int& max_roundings,
                     std::map<uint32_t, uint64_t>& expressions) {
  std::map<uint32_t, uint64_t> sums;  // by block
  for (Rank rank = 0; rank < call.task.nranks; ++rank) {
    for (const uint32_t block : call.task.blocks.gives[static_cast<size_t>(rank)]) {
      sums[block] = add_mod(sums[block], contribution(rank, block).sum);
    }
  }
  for (const NodePlan& plan : call.plans) {
    const auto rank = static_cast<size_t>(plan.rank);
    for (size_t unit = 0; unit < outputs[rank].size(); ++unit) {
      const uint32_t block = call.task.blocks.gets[rank][unit];
      const Value& value = *outputs[rank][unit];
      if (value.sum != sums[block]) return defect(plan, "an output block lacks a contribution or holds a wrong one");
      if (value.completed != call.task.completes && call.task.nranks > 1)
        return defect(plan, "a result is never completed, or completed although more is to come");
      max_roundings = std::max(max_roundings, value.roundings);
      if (expressions.try_emplace(block, value.expression).first->second != value.expression)
        return defect(plan, "ranks compute different expressions");
    }
  }
  return {};
}

}  // namespace

Result<NodeReport> verify_node(std::span<const NodeCallPlans> calls) {
  if (calls.empty() || calls[0].plans.empty()) return error(Code::InvalidArgument, "no plans to verify");
  NodeWorld world(calls[0].plans.size());
  NodeReport report;
  for (const NodeCallPlans& call : calls) {
    if (call.plans.size() != calls[0].plans.size() || call.task.nranks != static_cast<int>(call.plans.size()))
      return error(Code::InvalidArgument, "a call of other ranks");
    UnitValues inputs(call.plans.size());
    for (size_t rank = 0; rank < inputs.size(); ++rank) {
      for (const uint32_t block : call.task.blocks.gives[rank])
        inputs[rank].emplace_back(contribution(static_cast<Rank>(rank), block));
    }
    CCOM_TRY_ASSIGN(const UnitValues outputs, world.run({call.task, call.plans, call.tiles}, inputs));
    std::map<uint32_t, uint64_t> expressions;
    CCOM_TRY(check_results(call, outputs, report.max_roundings, expressions));
    if (&call != &calls[0]) continue;
    report.barriers = world.barriers();
    report.expressions = std::move(expressions);
  }
  return report;
}

}  // namespace ccom
