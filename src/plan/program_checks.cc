// SPDX-License-Identifier: Apache-2.0
#include "plan/program_checks.h"

#include <algorithm>
#include <set>

#include "base/collective.h"
#include "plan/executor.h"
#include "plan/program_verify.h"

namespace ccom {

Status defect(const Program& program, const std::string& what) {
  return error(Code::InternalError, "%s %s of %d ranks: %s", std::string(name_of(program.collective)).c_str(),
               program.algorithm.c_str(), program.nranks, what.c_str());
}

std::string stage_text(uint32_t stage) { return "stage " + std::to_string(stage); }

namespace {

using Where = Stage::Where;

// Only who is alone converts, and the user's buffers hold the call's type.
Status check_types(const Program& program, uint32_t index) {
  const Stage& stage = program.stages[index];
  const auto are_in_scratch = [&](uint32_t list) {
    const std::vector<BlockAt>& blocks = program.lists[list];
    return std::ranges::all_of(blocks, [](const BlockAt& at) { return at.buffer == Buffer::Scratch; });
  };
  if (stage.where == Where::All && (stage.gives_type != UnitType::Call || stage.gets_type != UnitType::Call))
    return defect(program, "messages of all ranks have a type of their own");
  for (const std::vector<StageMember>& group : stage.groups) {
    if (group.size() > 1 && stage.gives_type != stage.gets_type)
      return defect(program, stage_text(index) + " converts, but its ranks are not alone");
    for (const StageMember& member : group) {
      if ((stage.gives_type == UnitType::Call || are_in_scratch(member.gives)) &&
          (stage.gets_type == UnitType::Call || are_in_scratch(member.gets)))
        continue;
      return defect(program, stage_text(index) + ", rank " + std::to_string(member.rank) +
                                 ": the user's buffers hold no elements of another type");
    }
  }
  return {};
}

Status check_stage(const Program& program, uint32_t index) {
  const Stage& stage = program.stages[index];
  std::set<Rank> members;
  for (const std::vector<StageMember>& group : stage.groups) {
    if (group.empty()) return defect(program, stage_text(index) + " has an empty group");
    for (const StageMember& member : group) {
      const std::string who = stage_text(index) + ", rank " + std::to_string(member.rank);
      if (member.rank < 0 || member.rank >= program.nranks || !members.insert(member.rank).second)
        return defect(program, who + ": the rank does not exist or is in two groups");
      if (member.gives >= program.lists.size() || member.gets >= program.lists.size())
        return defect(program, who + ": a list of blocks does not exist");
      for (const uint32_t list : {member.gives, member.gets}) {
        for (const BlockAt& at : program.lists[list]) {
          if (at.buffer == Buffer::Scratch && at.index >= program.scratch_slots)
            return defect(program, who + ": a slot of scratch does not exist");
        }
      }
    }
  }
  if (stage.where == Where::All && (program.stages.size() != 1 || !stage.groups.empty()))
    return defect(program, "messages of all ranks are not the only stage");
  return check_types(program, index);
}

}  // namespace

Status check_structure(const Program& program) {
  if (program.nranks < 1 || program.slices < 1 || program.lanes < 1)
    return defect(program, "it has no ranks or slices");
  if (is_per_rank(program.collective) && program.slices != 1)
    return defect(program, "it slices units that belong to ranks");
  if (program.stages.empty()) return defect(program, "it has no stages");
  for (uint32_t stage = 0; stage < program.stages.size(); ++stage) CCOM_TRY(check_stage(program, stage));
  return {};
}

bool posts_at_once(const Plan& plan) {
  const Dependencies dependencies = derive_dependencies(plan);
  Executor executor(dependencies);
  std::vector<uint32_t> ready;
  executor.start(ready);
  for (size_t i = 0; i < ready.size(); ++i) {  // local steps end at once
    if (!plan.steps[ready[i]].is_transfer()) executor.done(ready[i], ready);
  }
  const auto transfers = std::ranges::count_if(plan.steps, &Step::is_transfer);
  return transfers == std::ranges::count_if(ready, [&](uint32_t s) { return plan.steps[s].is_transfer(); });
}

namespace {

// What a node plan's first phase shows to others: intervals of its input's units, cut by `scale` per unit.
std::vector<std::pair<uint64_t, uint64_t>> shown(const NodePlan& plan, uint64_t scale) {
  std::vector<std::pair<uint64_t, uint64_t>> intervals;
  for (const NodeStep& step : plan.phases[0].steps) {
    const uint64_t begin = step.source_piece * scale / plan.parts;
    const uint64_t end = (step.source_piece + step.count) * scale / plan.parts;
    if (!intervals.empty() && intervals.back().second == begin) {
      intervals.back().second = end;
    } else {
      intervals.emplace_back(begin, end);
    }
  }
  return intervals;
}

}  // namespace

bool begins_alike(const NodePlan& plan, const NodePlan& opening) {
  const uint64_t scale = uint64_t{plan.parts} * opening.parts;
  const NodePhase &phase = plan.phases[0], &first = opening.phases[0];
  const auto stages = [](const NodeStep& step) {
    return step.sources.size() == 1 && step.targets.size() == 1 && step.sources[0].area == Area::Input &&
           step.targets[0].area == Area::Stage && step.source_piece == step.target_piece;
  };
  return std::ranges::all_of(phase.steps, stages) && std::ranges::all_of(first.steps, stages) &&
         shown(plan, scale) == shown(opening, scale) && phase.waits_for == first.waits_for &&
         phase.is_full == first.is_full && phase.is_silent == first.is_silent;
}

Status check_order(const Program& program, std::span<const std::vector<Part>> orders) {
  std::vector<size_t> at(orders.size());
  // A part ends when all members of its group have come to it; messages are started alone.
  const auto is_there = [&](Rank rank, const Part& part) {
    const std::vector<Part>& order = orders[static_cast<size_t>(rank)];
    const size_t next = at[static_cast<size_t>(rank)];
    return next < order.size() && order[next] == part;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < orders.size(); ++rank) {
      while (at[rank] < orders[rank].size()) {
        const Part& part = orders[rank][at[rank]];
        const StagePlace place = find_member(program.stages[part.stage], static_cast<Rank>(rank));
        if (place.group >= 0 && part.kind != Part::Kind::Start) {
          const auto& group = program.stages[part.stage].groups[static_cast<size_t>(place.group)];
          if (!std::ranges::all_of(group, [&](const StageMember& member) { return is_there(member.rank, part); }))
            break;
          for (const StageMember& member : group) ++at[static_cast<size_t>(member.rank)];
        } else {
          ++at[rank];
        }
        moved = true;
      }
    }
  }
  for (size_t rank = 0; rank < orders.size(); ++rank) {
    if (at[rank] == orders[rank].size()) continue;
    const Part& part = orders[rank][at[rank]];
    return defect(program, "rank " + std::to_string(rank) + " waits for ever in tile " + std::to_string(part.tile) +
                               ", " + stage_text(part.stage) + ": the order of parts has a circle");
  }
  return {};
}

}  // namespace ccom
