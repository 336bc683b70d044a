// SPDX-License-Identifier: Apache-2.0
#include "runner/compiled_program.h"

#include <algorithm>

#include "algorithms/stage_plans.h"
#include "base/text.h"

namespace ccom {

const StageMember* CompiledProgram::member(size_t stage) const {
  const CompiledStage& part = stages[stage];
  const Stage& whole = program->stages[stage];
  if (part.kind == CompiledStage::Kind::None || whole.where == Stage::Where::All) return nullptr;
  return &whole.groups[part.group][static_cast<size_t>(part.member)];
}

namespace {

bool lies_in_one_buffer(const std::vector<BlockAt>& list) {
  return std::ranges::all_of(list, [&](const BlockAt& at) { return at.buffer == list[0].buffer; });
}

// What NodeViews can say.
Status check_host_group(const Program& program, size_t stage, size_t group) {
  for (const StageMember& member : program.stages[stage].groups[group]) {
    if (lies_in_one_buffer(program.gives(member)) && lies_in_one_buffer(program.gets(member))) continue;
    return error(Code::InternalError, "%s: in stage %zu blocks of rank %d lie in several buffers",
                 program.algorithm.c_str(), stage, member.rank);
  }
  return {};
}

Status check_copies(const Program& program, size_t stage, const StageMember& member) {
  for (const BlockAt& at : program.gets(member)) {
    if (std::ranges::find(program.gives(member), at.block, &BlockAt::block) != program.gives(member).end()) continue;
    return error(Code::InternalError, "%s: in stage %zu rank %d is alone and gets block %u, which it does not give",
                 program.algorithm.c_str(), stage, member.rank, at.block);
  }
  return {};
}

Result<CompiledStage> compile_stage(const CompiledProgram& self, size_t index, const WaysOfStage& ways) {
  const Program& program = *self.program;
  const Stage& stage = program.stages[index];
  CompiledStage compiled;
  if (stage.where == Stage::Where::All) {
    compiled.kind = CompiledStage::Kind::Messages;
    compiled.member = self.rank;
    compiled.in_place = self.in_place;
    compiled.plan = std::make_shared<const CompiledPlan>(stage_plan(program, stage, 0, self.rank, self.in_place));
    return compiled;
  }
  const StagePlace place = find_member(stage, self.rank);
  if (place.group < 0) return compiled;
  compiled.group = static_cast<size_t>(place.group);
  compiled.member = place.member;
  const std::vector<StageMember>& members = stage.groups[compiled.group];
  const StageMember& member = members[static_cast<size_t>(place.member)];
  compiled.in_place = is_in_place(program, member, self.in_place);
  if (members.size() == 1) {
    compiled.kind = CompiledStage::Kind::Copy;
    CCOM_TRY(check_copies(program, index, member));
  } else if (stage.where == Stage::Where::Host) {
    compiled.kind = CompiledStage::Kind::Host;
    CCOM_TRY(check_host_group(program, index, compiled.group));
    compiled.task = std::make_unique<PreparedTask>(node_task(program, stage, compiled.group),
                                                   ways ? ways(stage) : std::vector{stage.node}, place.member);
  } else {
    compiled.kind = CompiledStage::Kind::Messages;
    compiled.plan = std::make_shared<const CompiledPlan>(
        stage_plan(program, stage, compiled.group, place.member, compiled.in_place));
  }
  return compiled;
}

}  // namespace

Result<std::shared_ptr<const CompiledProgram>> compile(std::shared_ptr<const Program> program, Rank rank, bool in_place,
                                                       const WaysOfStage& ways) {
  auto compiled = std::make_shared<CompiledProgram>();
  compiled->program = std::move(program);
  compiled->rank = rank;
  compiled->in_place = in_place;
  compiled->algorithm_hash = hash_of_text(compiled->program->algorithm);
  for (size_t stage = 0; stage < compiled->program->stages.size(); ++stage) {
    CCOM_TRY_ASSIGN(CompiledStage part, compile_stage(*compiled, stage, ways));
    compiled->stages.push_back(std::move(part));
  }
  return std::shared_ptr<const CompiledProgram>(std::move(compiled));
}

}  // namespace ccom
