// SPDX-License-Identifier: Apache-2.0
#include "sim/program_timing.h"

#include <algorithm>
#include <numeric>

#include "plan/layout.h"
#include "planner/node_machine.h"

namespace ccom {
namespace {

constexpr size_t kLeastElements = 64;  // of a block, if all are to count as equally long

// Groups of a stage All are all ranks.
std::vector<StagePlace> all_places(int nranks) {
  std::vector<StagePlace> places;
  for (int rank = 0; rank < nranks; ++rank) places.push_back({0, rank});
  return places;
}

std::vector<StagePlace> places_in(const Stage& stage, int nranks) {
  if (stage.where == Stage::Where::All) return all_places(nranks);
  std::vector<StagePlace> places(static_cast<size_t>(nranks));
  for (int group = 0; group < static_cast<int>(stage.groups.size()); ++group) {
    int member = 0;
    for (const StageMember& at : stage.groups[static_cast<size_t>(group)]) {
      places[static_cast<size_t>(at.rank)] = {group, member++};
    }
  }
  return places;
}

}  // namespace

ProgramTiming::ProgramTiming(const Topology& topology, const Program& program, StagePlanSource source,
                             const SimOptions& options)
    : topology_(topology),
      program_(program),
      source_(std::move(source)),
      options_(options),
      wires_(topology),
      geometry_(program, options.unit_bytes / options.element_bytes, options.element_bytes),
      ranks_(static_cast<uint32_t>(options.fold_hosts ? topology.ranks_of(0).size() : topology.ranks.size())) {
  for (const Stage& stage : program.stages) places_.push_back(places_in(stage, topology.nranks()));
}

// ---- Messages -------------------------------------------------------------------------------------------------------

Result<const MessageGroup*> ProgramTiming::messages(uint32_t stage, int group, size_t tile) {
  std::unique_ptr<const MessageGroup>& known = messages_[key(stage, group, tile)];
  if (known == nullptr) {
    CCOM_TRY_ASSIGN(MessageGroup made, make_messages(stage, group, tile));
    known = std::make_unique<const MessageGroup>(std::move(made));
  }
  return known.get();
}

Result<MessageGroup> ProgramTiming::make_messages(uint32_t index, int group, size_t tile) {
  const Stage& stage = program_.stages[index];
  std::vector<Rank> ranks;
  if (stage.where == Stage::Where::All) {
    ranks.resize(topology_.ranks.size());
    std::iota(ranks.begin(), ranks.end(), 0);
  } else {
    for (const StageMember& member : stage.groups[size_at(group)]) ranks.push_back(member.rank);
  }
  Status refusal = Status::ok();
  const size_t elements = geometry_.tile_elements(tile);
  const GroupSource source{
      .topology = topology_,
      .wires = wires_,
      .ranks = ranks,
      .plan_of =
          [&](int member) {
            Plan plan = source_.messages(program_, stage, size_at(group), member, false);
            if (options_.fold_hosts && elements < kLeastElements * plan.blocks_per_unit) {
              refusal = error(Code::NotSupported, "blocks of %s have too few elements", plan.algorithm.c_str());
            }
            return plan;
          },
      .bytes_of = [&](const Plan& plan, int member) { return step_bytes(stage, group, member, tile, plan); },
      .is_traced = [&](Rank rank) { return std::ranges::count(options_.traced_ranks, rank) > 0; }};
  if (!options_.fold_hosts) return make_group(source, plans_);
  Result<MessageGroup> made = make_folded_group(source, plans_);
  if (!refusal.is_ok()) return refusal;
  return made;
}

StepBytes ProgramTiming::step_bytes(const Stage& stage, int group, int member, size_t tile, const Plan& plan) const {
  // What the call's elements are is not known, but for their size.
  const DataType type = data_type(stage.gives_type, DataType::Uint8);
  const size_t element_bytes = stage.gives_type == UnitType::Call ? options_.element_bytes : size_of(type);
  if (stage.messages.kind == MessageAlgorithm::Kind::Blocks && stage.where == Stage::Where::Across) {
    // Steps count the member's lists: of what it gives where it sends, of what it gets elsewhere.
    const StageMember& at = stage.groups[size_at(group)][size_at(member)];
    return [this, tile, type, element_bytes, gives = &program_.gives(at), gets = &program_.gets(at)](const Step& step) {
      const std::vector<BlockAt>& list = step.kind == StepKind::Send ? *gives : *gets;
      size_t elements = 0;
      for (uint32_t i = step.block; i < step.block + step.count; ++i) {
        elements += elements_for(type, geometry_.block_elements(tile, list[i].block));
      }
      return static_cast<uint64_t>(elements * element_bytes);
    };
  }
  // All other algorithms move units of one length.
  size_t unit = elements_for(type, geometry_.block_elements(tile, 0));
  if (stage.where == Stage::Where::Across) {
    const StageMember& at = stage.groups[size_at(group)][size_at(member)];
    const std::vector<BlockAt>& list = program_.gives(at).empty() ? program_.gets(at) : program_.gives(at);
    unit = list.empty() ? 0 : elements_for(type, geometry_.block_elements(tile, list[0].block));
  }
  if (options_.fold_hosts) {
    return [mean = static_cast<double>(unit * element_bytes) / plan.blocks_per_unit](const Step& step) {
      return static_cast<uint64_t>(mean * step.count + 0.5);
    };
  }
  const auto layout = std::make_shared<const BlockLayout>(plan, Partition(unit, plan.blocks_per_unit, element_bytes));
  return [layout, element_bytes](const Step& step) {
    return static_cast<uint64_t>(layout->elements(step.block, step.count) * element_bytes);
  };
}

// ---- Shared memory --------------------------------------------------------------------------------------------------

double ProgramTiming::node_ns(uint32_t stage, int group, size_t tile) {
  const auto [at, is_new] = node_ns_.try_emplace(key(stage, group, tile), 0);
  if (is_new) at->second = shared_memory_cost(program_.stages[stage], group, tile).time_ns;
  return at->second;
}

HostStageCost ProgramTiming::shared_memory_cost(const Stage& stage, int group, size_t tile) const {
  const StageMember& first = stage.groups[size_at(group)][0];
  HostMachine host(topology_, topology_.ranks[static_cast<size_t>(first.rank)].host);
  if (options_.node_costs) {
    host.machine.costs = options_.node_costs->memory;
    host.machine.lines = options_.node_costs->lines;
    host.machine.reused = options_.node_costs->reused;
  }
  const size_t block_bytes = geometry_.block_elements(tile, 0) * options_.element_bytes;
  return host_stage_cost(program_, stage, size_at(group), block_bytes, tiles(), options_.reach, host.machine);
}

}  // namespace ccom
