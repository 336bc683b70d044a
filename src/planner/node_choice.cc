// SPDX-License-Identifier: Apache-2.0
#include "planner/node_choice.h"

#include <algorithm>

#include "planner/node_tuning.h"

namespace ccom {
namespace {

// What is known of a call before it is made.
struct NodeWork {
  Collective collective = Collective::AllReduce;
  size_t block_bytes = 0;
  size_t shown_bytes = 0;  // of a rank's memory that others read, on the rank that shows most
  size_t total_bytes = 0;  // input and output of all ranks
  bool rounds_once = false;
};

NodeWork work_of(const Question& question, const Program& program, const Stage& stage, size_t group) {
  const size_t units = largest_units(question.collective, program.nranks);
  const ProgramGeometry geometry(program, question.bytes / units, 1);
  NodeWork work{.collective = stage.collective,
                .block_bytes = geometry.block_elements(0, 0),
                .rounds_once = question.narrow_float};
  for (const StageMember& member : stage.groups[group]) {
    work.shown_bytes = std::max(work.shown_bytes, program.gives(member).size() * work.block_bytes);
    work.total_bytes += (program.gives(member).size() + program.gets(member).size()) * work.block_bytes;
  }
  if (stage.collective == Collective::Reduce || stage.collective == Collective::AllReduce)
    work.block_bytes = work.shown_bytes;
  return work;
}

// Whether the kernel should copy a rank's input for others, instead of two copies through staging memory.
bool is_worth_reading(const NodeTuning& tuning, const NodeWork& work) {
  const size_t shown = work.shown_bytes;
  if (work.collective != Collective::AllReduce && work.collective != Collective::Reduce)
    return shown >= tuning.read_bytes;
  return work.collective == Collective::AllReduce && shown >= tuning.pull_from_bytes && shown <= tuning.pull_to_bytes;
}

NodeChoice choice_of(const NodeTuning& tuning, int nranks, const NodeWork& work) {
  const auto shape = [&](const Reach& reach) {
    const std::vector<Reach> all(static_cast<size_t>(nranks), reach);
    return node_shape(tuning, {work.collective, work.block_bytes, work.rounds_once}, all);
  };
  return {.asks = work.shown_bytes > tuning.small_bytes,
          .reads = is_worth_reading(tuning, work),
          .streams = work.total_bytes >= tuning.stream_bytes,
          .staged = shape({}),
          .readable = shape({.input = true}),
          .mapped = shape({.input = true, .output = true})};
}

}  // namespace

Topology host_alone(const Topology& topology, int host) {
  const std::vector<Rank> ranks = topology.ranks_of(host);
  Topology result;
  result.hosts = {topology.hosts[static_cast<size_t>(host)]};
  for (const Rank rank : ranks) {
    result.ranks.push_back(topology.ranks[static_cast<size_t>(rank)]);
    result.ranks.back().host = 0;
  }
  Host& machine = result.hosts[0];
  machine.cpus = std::max(1, machine.cpus * static_cast<int>(ranks.size()) / topology.ranks_on_machine_of(host));
  result.memory = topology.memory;
  result.network = topology.network;
  result.costs = topology.costs;
  return result;
}

NodeChoice node_choice(const Topology& topology, const Question& question, const Program& program, const Stage& stage) {
  // Groups and domains belong to one shape of host: where hosts differ it goes without.
  for (const bool is_alike : {true, false}) {
    std::vector<NodeChoice> choices;
    for (size_t group = 0; group < stage.groups.size(); ++group) {
      const std::vector<StageMember>& members = stage.groups[group];
      if (members.size() < 2) continue;
      NodeTuning tuning = node_tuning(host_alone(topology, topology.ranks[static_cast<size_t>(members[0].rank)].host));
      if (!is_alike) tuning.groups = tuning.domains = {};
      choices.push_back(choice_of(tuning, static_cast<int>(members.size()), work_of(question, program, stage, group)));
    }
    if (choices.empty()) break;
    if (!is_alike || std::ranges::count(choices, choices[0]) == std::ssize(choices)) return choices[0];
  }
  return {.asks = false};
}

}  // namespace ccom
