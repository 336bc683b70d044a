// SPDX-License-Identifier: Apache-2.0
#include "planner/hierarchical_search.h"

#include <algorithm>

#include "base/collective.h"
#include "planner/node_choice.h"

namespace ccom {
namespace {

// Of an owner's share of a tile: long enough to hide barriers and system calls, short enough to stay in its cache.
constexpr size_t kMostShareBytes = size_t{512} << 10;
constexpr size_t kLeastShareBytes = size_t{64} << 10;
// Fewer tiles leave the wire idle at the call's ends.
constexpr size_t kGoodTiles = 4;
constexpr size_t kTileGranule = 4096;
// Between two hosts every collective is one message each way, and tiles may follow each other on one channel: nothing
// is sent in answer to anything.
constexpr char kBetweenTwoHosts[] =
    "allreduce:one_shot,reduce_scatter:direct,allgather:direct,broadcast:star,reduce:star";
// Blocks of an allgather lie apart in the output: a message for each, so the fewest steps are best.
constexpr int kMostDirect = 16;

const char* forced_across(size_t hosts) {
  if (hosts == 2) return kBetweenTwoHosts;
  return hosts <= kMostDirect ? "allgather:direct" : "";
}

// All owners' wires together carry what one flow's question asks about.
Result<MessageAlgorithm> algorithm_across(const Topology& topology, const Question& question, const HostRanks& hosts,
                                          int owners) {
  if (needs_blocks_across(question.collective, hosts, owners))
    return MessageAlgorithm{.name = "blocks", .kind = MessageAlgorithm::Kind::Blocks};
  Question across = question;
  across.bytes = question.bytes / static_cast<size_t>(owners);
  if (question.root >= 0) across.root = topology.ranks[static_cast<size_t>(question.root)].host;
  CCOM_TRY_ASSIGN(const Choice choice,
                  choose(hosts_alone(topology, owners), {.forced = forced_across(hosts.size())}, across));
  return choice.program().stages[0].messages;
}

// Of every unit; 0: calls of this collective do not run in tiles.
size_t tile_bytes(const Question& question, const HostRanks& hosts, size_t owners) {
  if (question.collective == Collective::AllToAll || question.collective == Collective::Barrier) return 0;
  size_t ranks = 0;
  for (const auto& host : hosts) ranks += host.size();
  const size_t units = !is_per_rank(question.collective) ? 1 : ranks;
  const size_t tile = std::clamp(question.bytes / kGoodTiles, owners * kLeastShareBytes, owners * kMostShareBytes);
  return std::max(tile / units / kTileGranule, size_t{1}) * kTileGranule;
}

}  // namespace

HostRanks host_ranks(const Topology& topology) {
  HostRanks hosts(topology.hosts.size());
  for (Rank rank = 0; rank < topology.nranks(); ++rank) {
    hosts[static_cast<size_t>(topology.ranks[static_cast<size_t>(rank)].host)].push_back(rank);
  }
  return hosts;
}

Topology hosts_alone(const Topology& topology, int flows) {
  Topology result;
  result.hosts = topology.hosts;
  for (int host = 0; host < static_cast<int>(topology.hosts.size()); ++host) result.ranks.push_back({.host = host});
  result.memory = topology.memory;
  result.network = topology.network;
  result.network.bytes_per_second /= flows;
  result.costs = topology.costs;
  return result;
}

int lanes_across(size_t hosts) { return hosts == 2 ? 1 : static_cast<int>(kTilesUnderWay); }

std::vector<Program> hierarchical_programs(const Topology& topology, const Question& question) {
  std::vector<Program> programs;
  const HostRanks hosts = host_ranks(topology);
  const auto count = [](const std::vector<Rank>& host) { return host.size(); };
  if (hosts.size() < 2 || std::ranges::max(hosts, {}, count).size() < 2) return programs;
  const auto smallest = static_cast<int>(std::ranges::min(hosts, {}, count).size());
  for (const int owners : {smallest, 1}) {
    if (!serves_hosts(question.collective, hosts, owners) || (owners == 1 && smallest == 1 && !programs.empty()))
      continue;
    const Result<MessageAlgorithm> across = algorithm_across(topology, question, hosts, owners);
    if (!across) continue;
    programs.push_back(hierarchical_program(question.collective, question.root,
                                            {.hosts = hosts,
                                             .owners = owners,
                                             .across = *across,
                                             .tile_bytes = tile_bytes(question, hosts, static_cast<size_t>(owners)),
                                             .lanes = lanes_across(hosts.size())}));
    for (Stage& stage : programs.back().stages) {
      if (stage.where == Stage::Where::Host) stage.node = node_choice(topology, question, programs.back(), stage);
    }
  }
  return programs;
}

}  // namespace ccom
