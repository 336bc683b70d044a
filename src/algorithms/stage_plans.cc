// SPDX-License-Identifier: Apache-2.0
#include "algorithms/stage_plans.h"

#include <algorithm>
#include <memory>

#include "algorithms/node.h"
#include "base/assert.h"

namespace ccom {

namespace {

// Whose steps count blocks, and can be cut into single units.
Plan plan_by_blocks(const Call& call, const Staged& shape, const std::string& name) {
  if (!shape.by_position) return staged_plan(call, shape, name);
  Staged by_blocks = shape;
  by_blocks.by_position = false;
  return staged_plan(call, by_blocks, name);
}

Plan plan_by_blocks(const MessageAlgorithm& algorithm, const Call& call) {
  if (algorithm.kind != MessageAlgorithm::Kind::Staged) return message_plan(algorithm, call);
  return plan_by_blocks(call, algorithm.staged, algorithm.name);
}

}  // namespace

Plan message_plan(const MessageAlgorithm& algorithm, const Call& call) {
  using Kind = MessageAlgorithm::Kind;
  switch (algorithm.kind) {
    case Kind::Staged:
      if (call.collective == Collective::AllToAll)
        return ExchangePlans(algorithm.staged, call.nranks).make(call, algorithm.name);
      return staged_plan(call, algorithm.staged, algorithm.name);
    case Kind::Tree: return tree_plan(call, algorithm.tree, algorithm.name);
    case Kind::Trees: return tree_plan(call, algorithm.trees, algorithm.name);
    case Kind::Radix: return mixed_radix_plan(call, algorithm.radix, algorithm.name);
    case Kind::Pairwise: return pairwise_alltoall_plan(call);
    case Kind::Bruck: return bruck_alltoall_plan(call);
    case Kind::Bine: return bine_alltoall_plan(call);
    case Kind::Routed: {
      Call gather = call;
      gather.collective = Collective::AllGather;
      gather.in_place = false;
      return routed_alltoall_plan(call, algorithm.tree.parent.empty() ? plan_by_blocks(gather, algorithm.staged, "")
                                                                      : tree_plan(gather, algorithm.tree, ""));
    }
    case Kind::Explicit: {
      CCOM_ASSERT(static_cast<size_t>(call.rank) < algorithm.plans.size());
      Plan plan = algorithm.plans[static_cast<size_t>(call.rank)];
      plan.in_place = call.in_place;
      return plan;
    }
    case Kind::Blocks: break;
  }
  CCOM_ASSERT(!"plans of block lists need a program");
  return {};
}

std::function<Plan(Rank)> message_plans(const MessageAlgorithm& algorithm, Collective collective, int nranks,
                                        Rank root) {
  using Kind = MessageAlgorithm::Kind;
  if (algorithm.kind == Kind::Tree && algorithm.tree.by_position && is_per_rank(collective) && is_rooted(collective)) {
    return [&algorithm, plans = UnitTreePlans(algorithm.tree), collective, nranks, root](Rank rank) {
      return plans.make({collective, rank, nranks, root, false}, algorithm.name);
    };
  }
  if (algorithm.kind == Kind::Trees) {
    const auto plans = std::make_shared<const TreePlans>(algorithm.trees);
    return [&algorithm, plans, collective, nranks, root](Rank rank) {
      return plans->make({collective, rank, nranks, root, false}, algorithm.name);
    };
  }
  if (algorithm.kind != Kind::Staged) {
    return [&algorithm, collective, nranks, root](Rank rank) {
      return message_plan(algorithm, {collective, rank, nranks, root, false});
    };
  }
  if (collective == Collective::AllToAll) {
    const auto plans = std::make_shared<const ExchangePlans>(algorithm.staged, nranks);
    return [&algorithm, plans, collective, nranks, root](Rank rank) {
      return plans->make({collective, rank, nranks, root, false}, algorithm.name);
    };
  }
  const auto plans = std::make_shared<StagedPlans>(algorithm.staged, nranks, collective);
  return [&algorithm, plans, collective, nranks, root](Rank rank) {
    return plans->make({collective, rank, nranks, root, false}, algorithm.name);
  };
}

namespace {

// The same plan without steps that span units: both ends of a message cut it alike.
Plan unit_by_unit(Plan plan) {
  CCOM_ASSERT(plan.order.empty());
  const uint32_t unit = plan.blocks_per_unit;
  std::vector<Step> steps;
  steps.reserve(plan.steps.size());
  for (const Step& step : plan.steps) {
    CCOM_ASSERT(step.kind != StepKind::Reduce || step.block % unit + step.count <= unit);
    for (uint32_t done = 0; done < step.count;) {
      Step part = step;
      part.block += done;
      if (step.reads_source()) part.source += done;
      if (step.writes_target()) part.target += done;
      part.count = std::min(step.count - done, unit - part.block % unit);
      done += part.count;
      steps.push_back(part);
    }
  }
  plan.steps = std::move(steps);
  return plan;
}

}  // namespace

Plan stage_plan(const Program& program, const Stage& stage, size_t group, int member, bool in_place) {
  CCOM_ASSERT(stage.where != Stage::Where::Host);
  if (stage.messages.kind == MessageAlgorithm::Kind::Blocks) return block_exchange_plan(program, stage, group, member);
  if (stage.where == Stage::Where::All) {
    const Call call{stage.collective, member, program.nranks, stage.root, in_place};
    return program.is_v ? unit_by_unit(plan_by_blocks(stage.messages, call)) : message_plan(stage.messages, call);
  }
  const auto size = static_cast<int>(stage.groups[group].size());
  return unit_by_unit(plan_by_blocks(stage.messages, {stage.collective, member, size, stage.root, in_place}));
}

NodePlan stage_node_plan(const Program& program, const Stage& stage, size_t group, int member, bool in_place,
                         std::span<const Reach> reach) {
  CCOM_ASSERT(stage.where == Stage::Where::Host);
  return node_plan(node_task(program, stage, group), member, in_place, stage.node.shape_for(reach), reach);
}

}  // namespace ccom
