// SPDX-License-Identifier: Apache-2.0
#include "planner/plan_file.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/collective.h"
#include "base/files.h"
#include "planner/plan_file_parts.h"
#include "planner/plan_text.h"

namespace ccom {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kVersion = 1;

// ---- Writing --------------------------------------------------------------------------------------------------------

ordered_json json_of(const std::vector<BlockAt>& list) {
  ordered_json places = ordered_json::array();
  for (const BlockAt& at : list) places.push_back(plan_text(at));
  return places;
}

ordered_json json_of(const Stage& stage, const Program& program) {
  ordered_json object = {{"where", kWhereWords[static_cast<size_t>(stage.where)]}};
  const bool is_all = stage.where == Stage::Where::All;
  const bool sums = reduces(program.collective);
  if (!is_all || stage.collective != program.collective) object["collective"] = name_of(stage.collective);
  if (stage.root != (is_all ? program.root : -1)) object["root"] = stage.root;
  if (stage.sums != (is_all && sums)) object["sums"] = stage.sums;
  if (stage.completes != (is_all && sums)) object["completes"] = stage.completes;
  for (const std::vector<StageMember>& group : stage.groups) {
    ordered_json members = ordered_json::array();
    for (const StageMember& member : group) members.push_back({member.rank, member.gives, member.gets});
    object["groups"].push_back(std::move(members));
  }
  if (stage.where == Stage::Where::Host) object["node"] = json_of(stage.node);
  if (stage.where != Stage::Where::Host) object["messages"] = json_of(stage.messages);
  return object;
}

ordered_json json_of(const Program& program) {
  ordered_json object = {{"algorithm", program.algorithm}};
  if (program.slices != 1) object["slices"] = program.slices;
  if (program.tile_bytes != 0) object["tile_bytes"] = program.tile_bytes;
  if (program.lanes != 1) object["lanes"] = program.lanes;
  if (program.scratch_slots != 0) object["scratch_slots"] = program.scratch_slots;
  for (const std::vector<BlockAt>& list : program.lists) object["lists"].push_back(json_of(list));
  for (const Stage& stage : program.stages) object["stages"].push_back(json_of(stage, program));
  return object;
}

// ---- Reading --------------------------------------------------------------------------------------------------------

class ProgramReader {
 public:
  ProgramReader(Collective collective, int nranks, Rank root) {
    program_.collective = collective;
    program_.nranks = nranks;
    program_.root = root;
  }

  Program read(const JsonAt& at) {
    JsonObject object(at);
    program_.algorithm = object.at("algorithm").text(1, 64);
    const auto number = [&](const char* key, auto& value, int64_t low, int64_t high) {
      if (object.has(key)) value = static_cast<std::decay_t<decltype(value)>>(object.at(key).integer(low, high));
    };
    number("slices", program_.slices, 1, is_per_rank(program_.collective) ? 1 : program_.nranks);
    number("tile_bytes", program_.tile_bytes, 1, INT64_MAX);
    number("lanes", program_.lanes, 1, static_cast<int64_t>(kTilesUnderWay));
    number("scratch_slots", program_.scratch_slots, 0, INT32_MAX);
    if (object.has("lists")) {
      for_elements(object.at("lists"), 0, kMostPlanItems, [&](const JsonAt& list) {
        std::vector<BlockAt>& places = program_.lists.emplace_back();
        for_elements(list, 0, kMostPlanItems, [&](const JsonAt& place) { places.push_back(read_place(place)); });
      });
    }
    for_elements(object.at("stages"), 1, 8, [&](const JsonAt& stage) { program_.stages.push_back(read_stage(stage)); });
    object.finish();
    const bool has_all = std::ranges::count(program_.stages, Stage::Where::All, &Stage::where) > 0;
    if (has_all && program_.stages.size() > 1) at.problem.add(at.path + ".stages", "a stage of all ranks stands alone");
    const auto crossings = std::ranges::count(program_.stages, Stage::Where::Across, &Stage::where);
    if (crossings >= static_cast<int64_t>(kTilesUnderWay))
      at.problem.add(at.path + ".stages", "too many stages across");
    return std::move(program_);
  }

 private:
  BlockAt read_place(const JsonAt& at) const {
    const auto place = block_from(at.text(1, 64));
    if (!place) {
      at.problem.add(at.path, "is no block with its place, as 3@in[0]");
      return {};
    }
    const auto n = static_cast<uint64_t>(program_.nranks);
    uint64_t blocks = is_per_rank(program_.collective) ? n : program_.slices;
    uint64_t units = blocks;
    if (program_.collective == Collective::AllToAll) blocks *= n;
    if (place->buffer == Buffer::Scratch) units = program_.scratch_slots;
    if (place->block >= blocks) at.problem.add(at.path, "there are " + std::to_string(blocks) + " blocks");
    if (place->index >= units) at.problem.add(at.path, "there are " + std::to_string(units) + " places");
    return *place;
  }

  Stage read_stage(const JsonAt& at) const {
    JsonObject object(at);
    Stage stage;
    stage.where = word_at<Stage::Where>(object.at("where"), kWhereWords);
    const bool is_all = stage.where == Stage::Where::All;
    stage.collective =
        is_all && !object.has("collective") ? program_.collective : collective_at(object.at("collective"));
    stage.sums = stage.completes = is_all && reduces(program_.collective);
    stage.root = is_all ? program_.root : -1;
    if (object.has("root")) stage.root = static_cast<int>(object.at("root").integer(-1, program_.nranks - 1));
    if (object.has("sums")) stage.sums = object.at("sums").boolean();
    if (object.has("completes")) stage.completes = object.at("completes").boolean();
    if (!is_all) read_groups(object.at("groups"), stage);
    if (!at.problem.status().is_ok()) return stage;  // what follows is read against the groups
    if (stage.where == Stage::Where::Host) {
      std::vector<size_t> sizes;
      for (const auto& group : stage.groups) sizes.push_back(group.size());
      stage.node = read_node_choice(object.at("node"), stage.collective, sizes);
    } else {
      stage.messages = read_messages(object.at("messages"), stage);
    }
    object.finish();
    return stage;
  }

  static Collective collective_at(const JsonAt& at) {
    const auto collective = collective_from(at.text(1, 64));
    if (!collective || *collective == Collective::SendReceive) at.problem.add(at.path, "is no collective");
    return collective.value_or(Collective::AllReduce);
  }

  void read_groups(const JsonAt& at, Stage& stage) const {
    std::set<Rank> ranks;
    const auto last_list = static_cast<int64_t>(program_.lists.size()) - 1;
    for_elements(at, 1, kMostPlanItems, [&](const JsonAt& group) {
      std::vector<StageMember>& members = stage.groups.emplace_back();
      for_elements(group, 1, kMostPlanItems, [&](const JsonAt& member) {
        if (member.array_size(3, 3) == 0) return;
        const Rank rank = static_cast<Rank>(member.element(0).integer(0, program_.nranks - 1));
        if (!ranks.insert(rank).second) at.problem.add(member.path, "rank " + std::to_string(rank) + " is there twice");
        members.push_back({rank, static_cast<uint32_t>(member.element(1).integer(0, last_list)),
                           static_cast<uint32_t>(member.element(2).integer(0, last_list))});
      });
    });
    if (!at.problem.status().is_ok()) return;
    for (const std::vector<StageMember>& group : stage.groups) check_blocks(at, stage, group);
  }

  // Every block that somebody gets is given: by one member, or by some if it is a sum.
  void check_blocks(const JsonAt& at, const Stage& stage, const std::vector<StageMember>& group) const {
    std::map<uint32_t, int> givers;
    for (const StageMember& member : group) {
      for (const BlockAt& given : program_.gives(member)) ++givers[given.block];
    }
    for (const StageMember& member : group) {
      for (const BlockAt& gotten : program_.gets(member)) {
        const auto found = givers.find(gotten.block);
        if (found == givers.end() || (!stage.sums && found->second > 1)) {
          at.problem.add(at.path, "block " + std::to_string(gotten.block) + " is given by " +
                                      std::to_string(found == givers.end() ? 0 : found->second) + " members of rank " +
                                      std::to_string(member.rank) + "'s group");
        }
      }
    }
  }

  MessageAlgorithm read_messages(const JsonAt& at, const Stage& stage) const {
    if (stage.where == Stage::Where::All) {
      return read_algorithm(at, {stage.where, stage.collective, program_.nranks, stage.root});
    }
    const auto members = static_cast<int>(stage.groups[0].size());
    MessageAlgorithm algorithm = read_algorithm(at, {stage.where, stage.collective, members, stage.root});
    const auto is_like_first = [&](const auto& group) { return group.size() == stage.groups[0].size(); };
    if (algorithm.kind != MessageAlgorithm::Kind::Blocks && !std::ranges::all_of(stage.groups, is_like_first)) {
      at.problem.add(at.path, "needs groups of one size");
    }
    if (stage.root >= members) at.problem.add(at.path, "its group has no member " + std::to_string(stage.root));
    return algorithm;
  }

  Program program_;
};

PlanEntry read_entry(const JsonAt& at) {
  JsonObject object(at);
  PlanEntry entry;
  const JsonAt name = object.at("collective");
  const auto collective = collective_from(name.text(1, 64));
  if (!collective || *collective == Collective::SendReceive) {
    at.problem.add(name.path, "is no collective");
    return entry;
  }
  const auto nranks = static_cast<int>(object.at("nranks").integer(1, kMostPlanRanks));
  Rank root = -1;
  if (is_rooted(*collective)) root = static_cast<Rank>(object.at("root").integer(0, nranks - 1));
  if (object.has("bytes")) {
    JsonObject bytes(object.at("bytes"));
    if (bytes.has("from")) entry.from_bytes = static_cast<size_t>(bytes.at("from").integer(0, INT64_MAX));
    if (bytes.has("to")) {
      entry.to_bytes = static_cast<size_t>(bytes.at("to").integer(static_cast<int64_t>(entry.from_bytes), INT64_MAX));
    }
    bytes.finish();
  }
  entry.program = ProgramReader(*collective, nranks, root).read(object.at("program"));
  object.finish();
  return entry;
}

}  // namespace

const PlanEntry* find_entry(const std::vector<PlanEntry>& entries, const Question& question, int nranks) {
  const auto found = std::ranges::find_if(entries, [&](const PlanEntry& entry) {
    const Program& program = entry.program;
    return program.collective == question.collective && program.nranks == nranks &&
           (!is_rooted(program.collective) || program.root == question.root) && question.bytes >= entry.from_bytes &&
           question.bytes <= entry.to_bytes;
  });
  return found == entries.end() ? nullptr : &*found;
}

std::string to_json(const std::vector<PlanEntry>& entries) {
  ordered_json plans = ordered_json::array();
  for (const PlanEntry& entry : entries) {
    const Program& program = entry.program;
    ordered_json object = {{"collective", name_of(program.collective)}, {"nranks", program.nranks}};
    if (is_rooted(program.collective)) object["root"] = program.root;
    ordered_json bytes = {{"from", entry.from_bytes}};
    if (entry.to_bytes != SIZE_MAX) bytes["to"] = entry.to_bytes;
    object["bytes"] = std::move(bytes);
    object["program"] = json_of(program);
    plans.push_back(std::move(object));
  }
  return ordered_json{{"version", kVersion}, {"plans", std::move(plans)}}.dump(1) + "\n";
}

Result<std::vector<PlanEntry>> plans_from_json(std::string_view text) {
  CCOM_TRY_ASSIGN(const JsonDocument document, JsonDocument::parse(text));
  Problem problem;
  JsonObject object(document.root("file", problem));
  object.at("version").integer(kVersion, kVersion);
  std::vector<PlanEntry> entries;
  JsonAt plans = object.at("plans");
  plans.path = "plans";
  for_elements(plans, 1, kMostPlanItems, [&](const JsonAt& entry) { entries.push_back(read_entry(entry)); });
  object.finish();
  if (!problem.status().is_ok()) return problem.status();
  return entries;
}

Result<std::vector<PlanEntry>> read_plan_file(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) return error(ErrorKey::PlanFile, "plan file: %s", text.error().message().c_str());
  Result<std::vector<PlanEntry>> entries = plans_from_json(*text);
  if (!entries) return std::move(entries).error().in("plan file " + path);
  return entries;
}

Status check_hosts(const Program& program, const Topology& topology) {
  for (size_t stage = 0; stage < program.stages.size(); ++stage) {
    if (program.stages[stage].where != Stage::Where::Host) continue;
    for (const std::vector<StageMember>& group : program.stages[stage].groups) {
      std::vector<Rank> ranks;
      ranks.reserve(group.size());
      for (const StageMember& member : group) ranks.push_back(member.rank);
      const int host = topology.ranks[static_cast<size_t>(ranks[0])].host;
      if (ranks.size() == 1 || ranks == topology.ranks_of(host)) continue;
      return error(Code::NotSupported, "%s: stage %zu's group of rank %d is not all ranks of its host",
                   program.algorithm.c_str(), stage, ranks[0]);
    }
  }
  return {};
}

}  // namespace ccom
