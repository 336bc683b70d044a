// SPDX-License-Identifier: Apache-2.0
#include "sim/program_timing.h"

#include <algorithm>
#include <numeric>

#include "plan/partition.h"
#include "planner/node_cost.h"

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
      .bytes_of = [&](const Plan& plan,
                      int member) { return step_bytes(stage, group, member, tile, plan.blocks_per_unit); },
      .is_traced = [&](Rank rank) { return std::ranges::count(options_.traced_ranks, rank) > 0; }};
  if (!options_.fold_hosts) return make_group(source, plans_);
  Result<MessageGroup> made = make_folded_group(source, plans_);
  if (!refusal.is_ok()) return refusal;
  return made;
}

StepBytes ProgramTiming::step_bytes(const Stage& stage, int group, int member, size_t tile,
                                    uint32_t blocks_per_unit) const {
  const size_t element_bytes = options_.element_bytes;
  if (stage.messages.kind == MessageAlgorithm::Kind::Blocks && stage.where == Stage::Where::Across) {
    // Steps count the member's lists: of what it gives where it sends, of what it gets elsewhere.
    const StageMember& at = stage.groups[size_at(group)][size_at(member)];
    return [this, tile, element_bytes, gives = &program_.gives(at), gets = &program_.gets(at)](const Step& step) {
      const std::vector<BlockAt>& list = step.kind == StepKind::Send ? *gives : *gets;
      size_t elements = 0;
      for (uint32_t i = step.block; i < step.block + step.count; ++i) {
        elements += geometry_.block_elements(tile, list[i].block);
      }
      return static_cast<uint64_t>(elements * element_bytes);
    };
  }
  // All other algorithms move units of one length.
  size_t unit = geometry_.block_elements(tile, 0);
  if (stage.where == Stage::Where::Across) {
    const StageMember& at = stage.groups[size_at(group)][size_at(member)];
    const std::vector<BlockAt>& list = program_.gives(at).empty() ? program_.gets(at) : program_.gives(at);
    unit = list.empty() ? 0 : geometry_.block_elements(tile, list[0].block);
  }
  if (options_.fold_hosts) {
    return [mean = static_cast<double>(unit * element_bytes) / blocks_per_unit](const Step& step) {
      return static_cast<uint64_t>(mean * step.count + 0.5);
    };
  }
  return [partition = Partition(unit, blocks_per_unit, element_bytes), element_bytes](const Step& step) {
    return static_cast<uint64_t>(partition.elements(step.block, step.count) * element_bytes);
  };
}

// ---- Shared memory --------------------------------------------------------------------------------------------------

double ProgramTiming::node_ns(uint32_t stage, int group, size_t tile) {
  const auto [at, is_new] = node_ns_.try_emplace(key(stage, group, tile), 0);
  if (is_new) {
    at->second = is_alone(stage, group) ? copy_ns(program_.stages[stage], group, tile)
                                        : shared_memory_ns(program_.stages[stage], group, tile);
  }
  return at->second;
}

double ProgramTiming::copy_ns(const Stage& stage, int group, size_t tile) const {
  const StageMember& member = stage.groups[size_at(group)][0];
  size_t elements = 0;
  for (const BlockAt& at : program_.gets(member)) {
    if (std::ranges::count(program_.gives(member), at) == 0) elements += geometry_.block_elements(tile, at.block);
  }
  return 2 * static_cast<double>(elements * options_.element_bytes) * options_.node.prices.local_byte;
}

double ProgramTiming::shared_memory_ns(const Stage& stage, int group, size_t tile) const {
  const std::vector<StageMember>& members = stage.groups[size_at(group)];
  const bool shows_outputs = stage.collective == Collective::AllReduce || stage.collective == Collective::Reduce;
  std::vector<Reach> reach(members.size());
  std::vector<int> domains;
  size_t unit = 0, most_given = 1;
  for (size_t i = 0; i < members.size(); ++i) {
    const std::vector<BlockAt>& gives = program_.gives(members[i]);
    if (stage.node.asks) reach[i] = options_.node.reach;
    if (!shows_outputs || program_.gets(members[i]).empty()) reach[i].output = false;
    if (!stage.node.reads && !options_.node.reach.output) reach[i].input = false;
    for (const BlockAt& at : gives) unit = std::max(unit, geometry_.block_elements(tile, at.block));
    most_given = std::max(most_given, gives.size());
    domains.push_back(topology_.ranks[static_cast<size_t>(members[i].rank)].numa_node);
  }
  if (std::ranges::count(domains, -1) > 0) domains.clear();
  std::vector<NodePlan> plans;
  for (size_t i = 0; i < members.size(); ++i) {
    plans.push_back(source_.node(program_, stage, size_at(group), static_cast<int>(i), false, reach));
  }
  const size_t bytes = unit * options_.element_bytes;
  size_t node_tile = bytes;
  if (plans[0].staged) {
    node_tile = std::clamp<size_t>(std::min(stage.node.tile_bytes, options_.node.staging_bytes) / most_given, 1,
                                   std::max<size_t>(bytes, 1));
  }
  const NodeExtent extent{.unit_bytes = bytes, .tiles = bytes == 0 ? 1 : (bytes + node_tile - 1) / node_tile};
  // Ranks share what processors there are.
  const int host = topology_.ranks[static_cast<size_t>(members[0].rank)].host;
  const double crowding = static_cast<double>(topology_.ranks_on_machine_of(host)) /
                          std::max(topology_.hosts[static_cast<size_t>(host)].cpus, 1);
  return node_time_ns(plans, extent, domains, options_.node.prices) * std::max(crowding, 1.0);
}

}  // namespace ccom
