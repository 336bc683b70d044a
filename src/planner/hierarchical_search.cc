// SPDX-License-Identifier: Apache-2.0
#include "planner/hierarchical_search.h"

#include <algorithm>

#include "base/collective.h"
#include "planner/node_choice.h"
#include "planner/program_pricing.h"
#include "planner/search.h"

namespace ccom {
namespace {

// Of an owner's share of a tile: long enough to hide barriers and system calls, short enough to stay in its cache.
constexpr size_t kMostShareBytes = size_t{512} << 10;
constexpr size_t kLeastShareBytes = size_t{64} << 10;
// Fewer tiles leave the wire idle at the call's ends.
constexpr size_t kGoodTiles = 4;
constexpr size_t kTileGranule = 4096;
// Between racks that are far apart a tile is so many times what is on its way there: TCP has to find out what the link
// carries, and a message that ends in a loss waits for several round trips.
constexpr size_t kFarTimes = 16;
constexpr size_t kMostFarBytes = size_t{16} << 20;
// Between two hosts every collective is one message each way, and tiles may follow each other on one channel: nothing
// is sent in answer to anything.
constexpr char kBetweenTwoHosts[] =
    "allreduce:one_shot,reduce_scatter:direct,allgather:direct,broadcast:star,reduce:star";
// Blocks of an allgather lie apart in the output: a message for each, so the fewest steps are best.
const char* forced_across(size_t hosts) {
  if (hosts == 2) return kBetweenTwoHosts;
  return hosts <= kMostDirect ? "allgather:direct" : "";
}

// Sums that are rounded to 8 bits are so as rarely as can be: all parts are combined at once.
const char* narrow_across(size_t hosts) { return hosts == 2 ? kBetweenTwoHosts : "allreduce:two_shot"; }

// As what sums cross hosts in the programs of an owner or several.
UnitType wire_of(const Question& question) {
  return question.rounds_once && !question.is_v ? UnitType::Float32 : question.wire;
}

// All owners' wires together carry what one flow's question asks about.
Result<MessageAlgorithm> algorithm_across(const Topology& topology, const Question& question, const HostRanks& hosts,
                                          int owners) {
  if (question.is_v || needs_blocks_across(question.collective, hosts, owners))
    return MessageAlgorithm{.name = "blocks", .kind = MessageAlgorithm::Kind::Blocks};
  Question across = question;
  across.bytes = question.bytes / static_cast<size_t>(owners);
  if (question.root >= 0) across.root = topology.ranks[static_cast<size_t>(question.root)].host;
  across.wire = UnitType::Call;
  if (wire_of(question) == UnitType::Float32) {
    across.bytes = bytes_as(UnitType::Float32, question, across.bytes);
    across.narrow_float = across.rounds_once = false;
  }
  const char* const forced = is_block(question.wire) ? narrow_across(hosts.size()) : forced_across(hosts.size());
  CCOM_TRY_ASSIGN(const Choice choice, search(hosts_alone(topology), {.forced = forced}, across, owners));
  return choice.program().stages[0].messages;
}

// Of every unit, to be tried; 0: in one piece, as far as scratch memory allows. Shares are as long as what crosses of
// them.
std::vector<size_t> tile_lengths(const Topology& topology, const Question& question, size_t owners, UnitType wire) {
  const int nranks = topology.nranks();
  if (question.collective == Collective::AllToAll || question.collective == Collective::Barrier) return {0};
  const size_t units = largest_units(question.collective, nranks);
  const size_t widening = wire == UnitType::Float32 ? sizeof(float) / question.narrow_bytes : 1;
  const size_t least = owners * kLeastShareBytes / widening;
  // Those under way keep the link between racks busy, while the first is on its way there and its sum back.
  const auto far = std::min(kFarTimes * static_cast<size_t>(topology.bytes_between_racks()), kMostFarBytes);
  const size_t most = std::max(owners * kMostShareBytes / widening, far);
  const size_t tile = std::clamp(question.bytes / kGoodTiles, least, most);
  const size_t granules = std::max(tile / units / kTileGranule, size_t{1});
  const bool is_one_tile = question.bytes <= granules * kTileGranule * units;
  if (is_one_tile || question.bytes > most) return {granules * kTileGranule};
  return {granules * kTileGranule, 0};
}

Program tiled_program(const Topology& topology, const Question& question, HierarchicalShape shape, size_t tile_bytes) {
  shape.tile_bytes = tile_bytes;
  Program program = shape.sums_at_once ? hierarchical_direct_program(question.collective, question.root, shape)
                                       : hierarchical_program(question.collective, question.root, shape);
  program.is_v = question.is_v;
  for (Stage& stage : program.stages) {
    if (stage.where == Stage::Where::Host) stage.node = node_choice(topology, question, program, stage);
  }
  return program;
}

// With the tile that makes it cheapest.
Program best_program(const Topology& topology, const Question& question, const HierarchicalShape& shape) {
  std::vector<Program> programs;
  const auto owners = static_cast<size_t>(shape.owners);
  for (const size_t tile : tile_lengths(topology, question, owners, shape.wire)) {
    programs.push_back(tiled_program(topology, question, shape, tile));
  }
  if (programs.size() == 1) return std::move(programs[0]);
  return *std::ranges::min_element(
      programs, {}, [&](const Program& program) { return price_program(topology, question, program).whole.time_ns; });
}

}  // namespace

HostRanks host_ranks(const Topology& topology) {
  HostRanks hosts(topology.hosts.size());
  for (Rank rank = 0; rank < topology.nranks(); ++rank) {
    hosts[static_cast<size_t>(topology.ranks[static_cast<size_t>(rank)].host)].push_back(rank);
  }
  return hosts;
}

Topology hosts_alone(const Topology& topology) {
  Topology result;
  result.hosts = topology.hosts;
  for (Host& host : result.hosts) host.imposed.reset();
  for (int host = 0; host < static_cast<int>(topology.hosts.size()); ++host) result.ranks.push_back({.host = host});
  result.memory = topology.memory;
  result.network = topology.network;
  result.costs = topology.costs;
  result.network_costs = topology.network_costs;
  return result;
}

namespace {

constexpr auto kRanks = [](const std::vector<Rank>& host) { return host.size(); };

bool has_two_levels(const HostRanks& hosts) {
  return hosts.size() > 1 && std::ranges::max(hosts, {}, kRanks).size() > 1;
}
int least_ranks(const HostRanks& hosts) { return static_cast<int>(std::ranges::min(hosts, {}, kRanks).size()); }

}  // namespace

int lanes_across(size_t hosts) { return hosts == 2 ? 1 : static_cast<int>(kTilesUnderWay); }

std::vector<Program> hierarchical_programs(const Topology& topology, const Question& question) {
  std::vector<Program> programs;
  const HostRanks hosts = host_ranks(topology);
  const UnitType wire = wire_of(question);
  const bool serves_alone = hosts.size() > 1 && (is_block(wire) || topology.bytes_between_racks() > 0);
  if (!has_two_levels(hosts) && !serves_alone) return programs;
  const int smallest = least_ranks(hosts);
  for (const int owners : {smallest, 1}) {
    if (!serves_hosts(question.collective, hosts, owners) || (owners == 1 && smallest == 1 && !programs.empty()))
      continue;
    const Result<MessageAlgorithm> across = algorithm_across(topology, question, hosts, owners);
    if (!across) continue;
    programs.push_back(best_program(topology, question,
                                    {.hosts = hosts,
                                     .owners = owners,
                                     .across = *across,
                                     .lanes = lanes_across(hosts.size()),
                                     .wire = wire,
                                     .widens = wire != UnitType::Call && question.narrow_float}));
  }
  return programs;
}

// All its messages are posted at once: one set of channels serves all tiles.
std::optional<Program> direct_program(const Topology& topology, const Question& question) {
  const bool is_vector_sum = question.collective == Collective::AllReduce || question.collective == Collective::Reduce;
  const HostRanks hosts = host_ranks(topology);
  if (!is_vector_sum || !has_two_levels(hosts)) return {};
  return best_program(topology, question,
                      {.hosts = hosts,
                       .owners = least_ranks(hosts),
                       .across = {.name = "blocks", .kind = MessageAlgorithm::Kind::Blocks},
                       .sums_at_once = true});
}

}  // namespace ccom
