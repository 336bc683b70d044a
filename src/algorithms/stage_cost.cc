// SPDX-License-Identifier: Apache-2.0
#include "algorithms/stage_cost.h"

#include <algorithm>

#include "algorithms/node.h"

namespace ccom {
namespace {

// What a member that is alone copies.
HostStageCost copy_cost(const Program& program, const StageMember& member, double block_bytes,
                        const NodeMachine& machine) {
  double blocks = 0;
  for (const BlockAt& at : program.gets(member)) {
    if (std::ranges::count(program.gives(member), at) == 0) ++blocks;
  }
  HostStageCost cost;
  cost.most.local_bytes = 2 * blocks * block_bytes;
  cost.time_ns = blocks * block_bytes * (machine.costs.far_load_ns + machine.costs.far_store_ns);
  return cost;
}

}  // namespace

HostStageCost host_stage_cost(const Program& program, const Stage& stage, size_t group, size_t block_bytes,
                              size_t tiles, const Reach& reach, const NodeMachine& machine) {
  const std::vector<StageMember>& members = stage.groups[group];
  if (members.size() == 1) return copy_cost(program, members[0], static_cast<double>(block_bytes), machine);
  return node_task_cost(node_task(program, stage, group), stage.node, block_bytes, tiles, reach, machine);
}

HostStageCost node_task_cost(const NodeTask& task, const NodeChoice& way, size_t unit_bytes, size_t tiles,
                             const Reach& reach, const NodeMachine& machine) {
  const auto ranks = static_cast<size_t>(task.nranks);
  const bool shows_outputs = task.collective == Collective::AllReduce || task.collective == Collective::Reduce;
  std::vector<Reach> reaches(ranks, way.asks ? reach : Reach{});
  const bool is_mapped = reach.output;
  size_t touched = 0, most_given = 1;
  for (size_t i = 0; i < ranks; ++i) {
    const size_t gives = task.blocks.gives[i].size(), gets = task.blocks.gets[i].size();
    if (!shows_outputs || gets == 0) reaches[i].output = false;
    // What is not mapped is at best read through the kernel.
    if (!is_mapped && !way.reads) reaches[i].input = false;
    touched += (gives + gets) * unit_bytes * tiles;
    most_given = std::max(most_given, gives);
  }
  std::vector<NodePlan> plans;
  for (Rank rank = 0; rank < task.nranks; ++rank)
    plans.push_back(node_plan(task, rank, false, way.shape_for(reaches), reaches));
  NodeExtent extent{.unit_bytes = unit_bytes,
                    .touched_bytes = touched,
                    .reads = !is_mapped && reaches[0].input,
                    .streams = way.streams,
                    .streams_shared = way.streams_shared,
                    .claims_lines = way.claims_lines};
  if (plans[0].staged && unit_bytes > 0) {
    const size_t staged = std::min(way.tile_bytes, machine.staging_bytes);
    const size_t tile = std::clamp<size_t>(staged / most_given, 1, unit_bytes);
    extent.tiles = (unit_bytes + tile - 1) / tile;
  }
  HostStageCost cost{.time_ns = node_time_ns(plans, extent, machine),
                     .first_ns = node_first_ns(plans, extent, machine)};
  for (const NodePlan& plan : plans) {
    const NodeTraffic traffic = traffic_of(plan, extent, machine.domains);
    if (traffic.bytes() >= cost.most.bytes()) cost.most = traffic;
  }
  return cost;
}

}  // namespace ccom
