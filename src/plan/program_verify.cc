// SPDX-License-Identifier: Apache-2.0
#include "plan/program_verify.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "plan/collective_spec.h"
#include "plan/node_world.h"
#include "plan/program_checks.h"
#include "plan/program_world.h"
#include "plan/verify.h"

namespace ccom {
namespace {

class Run {
 public:
  Run(const Program& program, const StagePlanSource& source, const ProgramCase& what)
      : program_(program),
        source_(source),
        what_(what),
        spec_(program.collective, program.nranks, program.root, program.slices, 1),
        memory_(program, what.in_place) {}

  Result<ProgramReport> run() {
    const std::vector<Part> order = order_of(program_, what_.tiles);
    for (size_t call = 0; call < what_.calls; ++call) {
      fill();
      for (const Part& part : order) CCOM_TRY(run_part(part));
      CCOM_TRY(check_results());
    }
    return report_;
  }

 private:
  struct UnderWay {  // messages of a stage's group
    std::vector<Plan> plans;
    UnitValues inputs;
  };

  void fill() {
    memory_.clear();
    for (Rank rank = 0; rank < program_.nranks; ++rank) {
      knows_[rank] = {rank};
      for (const BlockAt& at : input_blocks(program_, rank)) {
        for (size_t tile = 0; tile < what_.tiles; ++tile) {
          Value value = spec_.contribution(rank, item(at.block, tile));
          value.origin = at.block;
          memory_.store(rank, tile, at, value);
        }
      }
    }
  }
  uint64_t item(uint32_t block, size_t tile) const { return tile * spec_.items() + block; }

  Status run_part(const Part& part) {
    const Stage& stage = program_.stages[part.stage];
    for (size_t group = 0; group < stage.groups.size(); ++group) {
      const bool is_alone = stage.groups[group].size() == 1;
      if (is_alone && part.kind == Part::Kind::Finish) continue;
      if (is_alone) {
        CCOM_TRY(copy_alone(part, stage.groups[group][0]));
      } else if (part.kind == Part::Kind::Run) {
        CCOM_TRY(run_node(part, group));
      } else {
        CCOM_TRY(part.kind == Part::Kind::Start ? start(part, group) : finish(part, group));
      }
    }
    return {};
  }

  Status wrong(const Part& part, Rank rank, const std::string& what) const {
    return defect(program_, stage_text(part.stage) + ", rank " + std::to_string(rank) + ": " + what);
  }

  // ---- Views --------------------------------------------------------------------------------------------------------

  static const BlockAt* find(const std::vector<BlockAt>& list, uint32_t block) {
    const auto found = std::ranges::find(list, block, &BlockAt::block);
    return found == list.end() ? nullptr : &*found;
  }
  BlockAt where(Rank rank, const BlockAt& at) const { return resolve(program_, rank, at, memory_.in_place(rank)); }

  // Places that a member gives and gets: no block is overwritten by another, and all that are in both lists lie at one
  // address, or none.
  Status check_views(const Part& part, const StageMember& member, bool in_place) const {
    const std::vector<BlockAt>& gives = program_.gives(member);
    const std::vector<BlockAt> outputs = output_blocks(program_, member.rank);
    std::set<std::pair<Buffer, uint32_t>> targets;
    for (const BlockAt& at : program_.gets(member)) {
      const BlockAt target = where(member.rank, at);
      if (!targets.emplace(target.buffer, target.index).second)
        return wrong(part, member.rank, "two blocks are put at one place");
      const BlockAt* const given = find(gives, at.block);
      if (given != nullptr && (where(member.rank, *given) == target) != in_place)
        return wrong(part, member.rank, "some of its blocks are in place and others are not");
      const bool stays = given != nullptr && in_place;
      if (target.buffer == Buffer::Input && !stays) return wrong(part, member.rank, "it writes to the input");
      const bool is_known =
          std::ranges::any_of(outputs, [&](const BlockAt& output) { return where(member.rank, output) == target; });
      if (target.buffer == Buffer::Output && !stays && !is_known)
        return wrong(part, member.rank, "a block is put where the output has another one, or none");
    }
    for (const BlockAt& at : gives) {
      const BlockAt place = where(member.rank, at);
      const BlockAt* const gotten = find(program_.gets(member), at.block);
      const bool stays = gotten != nullptr && where(member.rank, *gotten) == place;
      const bool swaps = program_.collective == Collective::AllToAll && program_.is_node();
      if (!stays && !swaps && targets.contains({place.buffer, place.index}))
        return wrong(part, member.rank, "a block is overwritten that it still gives");
    }
    return {};
  }

  Result<std::vector<std::optional<Value>>> load(const Part& part, const StageMember& member) const {
    std::vector<std::optional<Value>> values;
    for (const BlockAt& at : program_.gives(member)) {
      const std::string what = "block " + std::to_string(at.block);
      values.push_back(memory_.load(member.rank, part.tile, at));
      if (!values.back()) return wrong(part, member.rank, what + " is given before it is there");
      if (values.back()->origin != at.block) return wrong(part, member.rank, what + " is not what lies there");
      if (values.back()->type != program_.stages[part.stage].gives_type)
        return wrong(part, member.rank, what + " lies there in elements of another type");
      if (!memory_.may_read(member.rank, part.tile, at))
        return wrong(part, member.rank, what + " is read while messages write to it");
    }
    return values;
  }

  Status store(const Part& part, const StageMember& member, std::vector<std::optional<Value>> values) {
    const std::vector<BlockAt>& gets = program_.gets(member);
    for (size_t i = 0; i < gets.size(); ++i) {
      const BlockAt* const given = find(program_.gives(member), gets[i].block);
      const bool stays = given != nullptr && where(member.rank, *given) == where(member.rank, gets[i]);
      if (!stays && !memory_.may_write(member.rank, part.tile, gets[i]))
        return wrong(part, member.rank, "it writes to what messages read or write");
      values[i]->origin = gets[i].block;
      memory_.store(member.rank, part.tile, gets[i], values[i]);
    }
    return {};
  }

  Status copy_alone(const Part& part, const StageMember& member) {
    const Stage& stage = program_.stages[part.stage];
    CCOM_TRY(check_views(part, member, is_in_place(program_, member, memory_.in_place(member.rank))));
    CCOM_TRY_ASSIGN(const auto given, load(part, member));
    std::vector<std::optional<Value>> values;
    for (const BlockAt& at : program_.gets(member)) {
      const BlockAt* const source = find(program_.gives(member), at.block);
      if (source == nullptr) return wrong(part, member.rank, "it gets a block that nobody gives");
      values.push_back(given[static_cast<size_t>(source - program_.gives(member).data())]);
      if (stage.completes && values.back()->completed) return wrong(part, member.rank, "a sum is completed twice");
      values.back()->completed |= stage.completes;
      if (stage.gets_type != stage.gives_type) convert_to(*values.back(), stage.gets_type);
    }
    return store(part, member, std::move(values));
  }

  // ---- Host stages --------------------------------------------------------------------------------------------------

  // What the ranks of a group could announce: an input that an alltoall overwrites is not shown; a buffer that is both
  // input and output can be reached as both, or (by the kernel) be read.
  std::vector<Reach> reach_of(const Stage& stage, size_t group, const std::vector<bool>& in_place) const {
    std::vector<Reach> reach(stage.groups[group].size());
    for (size_t i = 0; i < reach.size() && !what_.reach.empty() && stage.node.asks; ++i) {
      reach[i] = what_.reach[i % what_.reach.size()];
      if (in_place[i] && stage.collective == Collective::AllToAll) reach[i].input = false;
      if (in_place[i] && !stage.node.reads) reach[i].input = reach[i].output = reach[i].input && reach[i].output;
      if (program_.gets(stage.groups[group][i]).empty()) reach[i].output = false;
      const bool shows_outputs = stage.collective == Collective::AllReduce || stage.collective == Collective::Reduce;
      if (!shows_outputs) reach[i].output = false;
    }
    return reach;
  }

  Status run_node(const Part& part, size_t group) {
    const Stage& stage = program_.stages[part.stage];
    const std::vector<StageMember>& members = stage.groups[group];
    const NodeTask task = node_task(program_, stage, group);
    std::vector<bool> in_place;
    UnitValues inputs;
    for (const StageMember& member : members) {
      in_place.push_back(is_in_place(program_, member, memory_.in_place(member.rank)));
      CCOM_TRY(check_views(part, member, in_place.back()));
      CCOM_TRY_ASSIGN(auto given, load(part, member));
      inputs.push_back(std::move(given));
    }
    const std::vector<Reach> reach = reach_of(stage, group, in_place), nobody(members.size());
    std::vector<NodePlan> plans;
    for (size_t i = 0; i < members.size(); ++i) {
      const auto local = static_cast<int>(i);
      plans.push_back(source_.node(program_, stage, group, local, in_place[i], reach));
      const NodePlan opening = source_.node(program_, stage, group, local, in_place[i], nobody);
      if (!reach[i].input && !begins_alike(plans.back(), opening))
        return wrong(part, members[i].rank, "its plan does not begin as the one for ranks that cannot be reached");
    }
    if (stage.collective == Collective::Barrier) {
      if (!plans[0].phases[0].is_full) return wrong(part, members[0].rank, "its barrier does not wait for everybody");
      hear_of_each_other(stage, group);
    }
    const auto [world, is_new] = hosts_.try_emplace(ranks_of(members), members.size());
    const size_t tiles = plans[0].staged ? what_.node_tiles : 1;
    CCOM_TRY_ASSIGN(UnitValues outputs, world->second.run({task, plans, tiles}, inputs));
    for (size_t i = 0; i < members.size(); ++i) CCOM_TRY(store(part, members[i], std::move(outputs[i])));
    return {};
  }

  // In a barrier: whom a rank knows to have come, all others of the group know then.
  void hear_of_each_other(const Stage& stage, size_t group) {
    std::set<Rank> all;
    for (const StageMember& member : stage.groups[group]) all.merge(std::set<Rank>(knows_[member.rank]));
    for (const StageMember& member : stage.groups[group]) knows_[member.rank] = all;
  }

  static std::vector<Rank> ranks_of(const std::vector<StageMember>& members) {
    std::vector<Rank> ranks;
    for (const StageMember& member : members) ranks.push_back(member.rank);
    return ranks;
  }

  // ---- Messages -----------------------------------------------------------------------------------------------------

  Status start(const Part& part, size_t group) {
    const Stage& stage = program_.stages[part.stage];
    UnderWay& messages = under_way_[{part.tile, part.stage, group}];
    for (size_t i = 0; i < stage.groups[group].size(); ++i) {
      const StageMember& member = stage.groups[group][i];
      const bool in_place = is_in_place(program_, member, memory_.in_place(member.rank));
      CCOM_TRY(check_views(part, member, in_place));
      CCOM_TRY_ASSIGN(auto given, load(part, member));
      messages.inputs.push_back(std::move(given));
      messages.plans.push_back(source_.messages(program_, stage, group, static_cast<int>(i), in_place));
      const bool shares = static_cast<size_t>(program_.lanes) < std::min(what_.tiles, kTilesUnderWay);
      if (shares && !posts_at_once(messages.plans.back()))
        return wrong(part, member.rank, "tiles share channels, but their messages wait for one another");
      for_each_place(member, [&](const BlockAt& at, bool writes) { memory_.lock(member.rank, part.tile, at, writes); });
    }
    return {};
  }

  Status finish(const Part& part, size_t group) {
    const Stage& stage = program_.stages[part.stage];
    const auto found = under_way_.find({part.tile, part.stage, group});
    if (found == under_way_.end())
      return defect(program_, stage_text(part.stage) + " is finished before it is started");
    if (stage.collective == Collective::Barrier) {
      CCOM_TRY(verify(found->second.plans).error());
      hear_of_each_other(stage, group);
      under_way_.erase(found);
      return {};
    }
    const NodeTask task = node_task(program_, stage, group);
    CCOM_TRY_ASSIGN(UnitValues outputs, run_values(found->second.plans, task.blocks, found->second.inputs));
    under_way_.erase(found);
    for (size_t i = 0; i < stage.groups[group].size(); ++i) {
      const StageMember& member = stage.groups[group][i];
      for_each_place(member,
                     [&](const BlockAt& at, bool writes) { memory_.unlock(member.rank, part.tile, at, writes); });
      CCOM_TRY(store(part, member, std::move(outputs[i])));
    }
    return {};
  }

  // What messages read, and write where it is not there already.
  template <typename Fn>
  void for_each_place(const StageMember& member, Fn fn) const {
    for (const BlockAt& at : program_.gives(member)) fn(at, false);
    for (const BlockAt& at : program_.gets(member)) {
      const BlockAt* const given = find(program_.gives(member), at.block);
      if (given == nullptr || where(member.rank, *given) != where(member.rank, at)) fn(at, true);
    }
  }

  Status check_results() {
    std::map<std::pair<uint32_t, size_t>, uint64_t> expressions;
    for (Rank rank = 0; rank < program_.nranks; ++rank) {
      if (program_.collective == Collective::Barrier && knows_[rank].size() != static_cast<size_t>(program_.nranks))
        return defect(program_, "rank " + std::to_string(rank) + " leaves the barrier before all ranks have come");
      for (const BlockAt& at : output_blocks(program_, rank)) {
        for (size_t tile = 0; tile < what_.tiles; ++tile) CCOM_TRY(check_result(rank, at, tile, expressions));
      }
    }
    return {};
  }

  Status check_result(Rank rank, const BlockAt& at, size_t tile,
                      std::map<std::pair<uint32_t, size_t>, uint64_t>& expressions) {
    const std::string what = "rank " + std::to_string(rank) + ": block " + std::to_string(at.block) + " of the output ";
    const std::optional<Value> value = memory_.load(rank, tile, at);
    if (!value) return defect(program_, what + "is never written");
    if (value->origin != at.block) return defect(program_, what + "holds another block");
    if (value->type != UnitType::Call) return defect(program_, what + "holds elements of another type");
    const uint64_t wanted = item(at.block, tile);
    if (value->sum != spec_.expected(wanted)) return defect(program_, what + spec_.what_is_wrong(wanted, value->sum));
    if (value->completed != spec_.reduces())
      return defect(program_,
                    what + (spec_.reduces() ? "is never completed" : "is completed although nothing is summed"));
    if (expressions.try_emplace({at.block, tile}, value->expression).first->second != value->expression)
      return defect(program_, what + "is another expression than on another rank: bits may differ");
    report_.max_roundings = std::max(report_.max_roundings, value->roundings);
    report_.max_encodings = std::max(report_.max_encodings, value->encodings);
    if (report_.order != SumOrder::Any) report_.order = std::min(report_.order, spec_.order_of(wanted, *value));
    return {};
  }

  const Program& program_;
  const StagePlanSource& source_;
  const ProgramCase& what_;
  CollectiveSpec spec_;
  ProgramMemory memory_;
  std::map<Rank, std::set<Rank>> knows_;  // of a barrier: who has come
  std::map<std::vector<Rank>, NodeWorld> hosts_;
  std::map<std::tuple<uint32_t, uint32_t, size_t>, UnderWay> under_way_;  // by tile, stage, group
  ProgramReport report_;
};

Result<ProgramReport> verify_messages(const Program& program, const StagePlanSource& source, const ProgramCase& what) {
  std::vector<Plan> plans;
  for (Rank rank = 0; rank < program.nranks; ++rank) {
    const bool in_place = !what.in_place.empty() && what.in_place[static_cast<size_t>(rank) % what.in_place.size()];
    plans.push_back(source.messages(program, program.stages[0], 0, rank, in_place));
  }
  CCOM_TRY_ASSIGN(const VerifyReport report, verify(plans));
  return ProgramReport{.max_roundings = report.max_roundings, .order = report.order};
}

}  // namespace

Result<ProgramReport> verify_program(const Program& program, const StagePlanSource& source, const ProgramCase& what) {
  CCOM_TRY(check_structure(program));
  if (program.is_messages()) return verify_messages(program, source, what);
  const std::vector<std::vector<Part>> orders(static_cast<size_t>(program.nranks), order_of(program, what.tiles));
  CCOM_TRY(check_order(program, orders));
  return Run(program, source, what).run();
}

}  // namespace ccom
