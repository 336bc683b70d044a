// SPDX-License-Identifier: Apache-2.0
#include "planner/node_choice.h"

#include <algorithm>
#include <map>
#include <optional>

#include "algorithms/stage_cost.h"
#include "base/collective.h"
#include "planner/host_groups.h"
#include "planner/node_machine.h"
#include "planner/program_pricing.h"
#include "planner/programs.h"

namespace ccom {
namespace {

// What fits beside a rank's flag lines (NodeLayout): up to here nobody needs to ask who can be reached.
constexpr size_t kMostSmallBytes = size_t{8} << 10;
constexpr size_t kMostAheadBytes = size_t{64} << 10;  // the same in long mail
constexpr size_t kTinyBytes = 64;
// Such calls run by one function without a look-up, which no price shows. Where each of many ranks reads everybody's
// vector, sharing the sums out gives that up if it takes this part of the time.
constexpr double kSmallGain = 2;

// What all ranks' buffers are like: ordinary memory that only the kernel can read for others, or mapped.
constexpr Reach kOrdinary{.input = true}, kMapped{.input = true, .output = true};

// A group of a stage, and the host that it is.
struct HostGroup {
  const Program& program;
  const Stage& stage;
  size_t group = 0;
  size_t block_bytes = 0;  // of a tile
  size_t tiles = 1;
  const NodeMachine& machine;

  double time_ns(const NodeChoice& choice, const Reach& reach = kOrdinary) const {
    Stage tried = stage;
    tried.node = choice;
    return host_stage_cost(program, tried, group, block_bytes, tiles, reach, machine).time_ns;
  }
  // Of a rank's memory that others read, on the rank that shows most.
  size_t shown_bytes() const {
    size_t most = 0;
    for (const StageMember& member : stage.groups[group]) most = std::max(most, program.gives(member).size());
    return most * block_bytes;
  }
  // What goes into scratch is read by the next stage at once: past the caches it would come back from memory.
  bool gets_scratch() const {
    return std::ranges::any_of(stage.groups[group], [&](const StageMember& member) {
      return std::ranges::any_of(program.gets(member), [](const BlockAt& at) { return at.buffer == Buffer::Scratch; });
    });
  }
  // Whether a rank is ever the only one to read what another stages: of sums everybody reads its own piece.
  bool has_single_readers() const {
    if (stage.sums) return true;
    std::map<uint32_t, int> takers;
    for (const StageMember& member : stage.groups[group])
      for (const BlockAt& got : program.gets(member)) ++takers[got.block];
    return std::ranges::any_of(stage.groups[group], [&](const StageMember& member) {
      return std::ranges::any_of(program.gives(member), [&](const BlockAt& given) {
        const auto own = std::ranges::count(program.gets(member), given.block, &BlockAt::block);
        return takers[given.block] - own == 1;
      });
    });
  }
  bool has_one_giver() const {
    return std::ranges::count_if(stage.groups[group],
                                 [&](const StageMember& member) { return !program.gives(member).empty(); }) == 1;
  }
  bool has_core_for_each() const { return stage.groups[group].size() <= static_cast<size_t>(machine.cpus); }
};

// Reading other processes' memory may not be permitted, and what cannot be read is staged after all: it must be clearly
// better.
constexpr double kClearly = 1.1;
// Prices are not exact: what was chosen first is left for a better one, not for an equal one.
constexpr double kClearlyLess = 0.97;

const NodeChoice& cheapest(const HostGroup& group, const std::vector<NodeChoice>& choices) {
  if (choices.size() == 1) return choices[0];
  return *std::ranges::min_element(
      choices, {}, [&](const NodeChoice& choice) { return group.time_ns(choice) * (choice.reads ? kClearly : 1); });
}

// One shape whatever can be reached.
NodeChoice only(const NodeShape& shape) { return {.staged = shape, .readable = shape, .mapped = shape}; }

// The ways to run a call that asks who can be reached. The first phase, before anybody knows, is the same in all shapes
// of a way. reads: by the kernel too, what is announced as readable.
std::vector<NodeChoice> ways(const HostGroup& group, const RankGroups& domains, bool rounds_once, bool reads) {
  const Collective collective = group.stage.collective;
  const bool is_allreduce = collective == Collective::AllReduce;
  std::vector<NodeChoice> found;
  const auto add = [&](NodeChoice way, bool by_kernel) {
    way.reads = by_kernel;
    found.push_back(std::move(way));
  };
  if (!is_allreduce && collective != Collective::Reduce) {
    add(only({NodeScheme::Direct}), false);
    if (reads) add(only({NodeScheme::Direct}), true);
    return found;
  }
  const NodeShape one_shot{NodeScheme::OneShot, {}, true}, two_shot{NodeScheme::TwoShot};
  add({.staged = one_shot, .readable = one_shot, .mapped = {NodeScheme::TwoShot, {}, true}}, false);
  add(only(two_shot), false);
  if (is_allreduce && reads) add({.staged = two_shot, .readable = {NodeScheme::Pull}, .mapped = two_shot}, true);
  if (is_allreduce && !rounds_once && !domains.empty()) add(only({NodeScheme::Domains, domains}), false);
  return found;
}

// Of a call that nobody asks in.
NodeChoice small_choice(const HostGroup& group, const RankGroups& cache_groups) {
  const Collective collective = group.stage.collective;
  const bool sums_vector = collective == Collective::AllReduce || collective == Collective::Reduce;
  std::vector<NodeChoice> choices{
      only(sums_vector ? NodeShape{NodeScheme::OneShot, {}, true} : NodeShape{NodeScheme::Direct})};
  if (collective == Collective::AllReduce && !cache_groups.empty() && group.has_core_for_each())
    choices.push_back(only({NodeScheme::GatherRelease, cache_groups}));
  NodeChoice choice = cheapest(group, choices);
  choice.asks = false;
  return choice;
}

NodeChoice choice_of(const HostGroup& group, const RankGroups& domains, const RankGroups& cache_groups,
                     bool rounds_once) {
  std::vector<NodeChoice> choices;
  if (group.shown_bytes() <= kMostSmallBytes) {
    const NodeChoice small = small_choice(group, cache_groups), two_shot = only({NodeScheme::TwoShot});
    const bool is_sum = group.stage.collective == Collective::AllReduce;
    return is_sum && kSmallGain * group.time_ns(two_shot) < group.time_ns(small) ? two_shot : small;
  }
  // With fewer cores than ranks, what the kernel reads is in no cache any more when its turn comes.
  choices = ways(group, domains, rounds_once, group.has_core_for_each());
  for (NodeChoice& choice : choices) {
    if (group.gets_scratch()) break;
    const auto both = [&] { return group.time_ns(choice) + group.time_ns(choice, kMapped); };
    const double cached_ns = both();
    choice.streams = true;
    choice.streams = both() < cached_ns;
  }
  return cheapest(group, choices);
}

}  // namespace

NodeChoice node_choice(const Topology& topology, const Question& question, const Program& program, const Stage& stage) {
  const ProgramGeometry geometry(program, question.bytes / largest_units(question.collective, program.nranks), 1);
  // Groups and domains belong to one shape of host: where hosts differ it goes without.
  for (const bool is_alike : {true, false}) {
    std::vector<NodeChoice> choices;
    for (size_t group = 0; group < stage.groups.size(); ++group) {
      if (stage.groups[group].size() < 2) continue;
      const int host = topology.ranks[static_cast<size_t>(stage.groups[group][0].rank)].host;
      const HostMachine machine(topology, host);
      const RankGroups none;
      const size_t block_bytes = bytes_as(stage.gives_type, question, geometry.block_elements(0, 0));
      choices.push_back(choice_of({program, stage, group, block_bytes, geometry.tiles(), machine.machine},
                                  is_alike ? domains_of(topology, host) : none,
                                  is_alike ? cache_groups_of(topology, host) : none,
                                  question.narrow_float || question.order != SumOrder::Any));
    }
    if (choices.empty()) break;
    if (!is_alike || std::ranges::count(choices, choices[0]) == std::ssize(choices)) return choices[0];
  }
  return {.asks = false};
}

namespace {

// Of what a rank stages at a time: half of a small second-level cache.
constexpr size_t kShortTile = size_t{64} << 10;
constexpr size_t kMostWays = 24;

// Without other shapes' domains: they round differently.
std::vector<NodeChoice> shapes_like(const HostGroup& group) {
  std::vector<NodeChoice> shapes{group.stage.node};
  if (group.stage.node.staged.scheme == NodeScheme::Domains) return shapes;
  for (NodeChoice& way : ways(group, {}, true, true)) {
    way.streams = group.stage.node.streams;
    if (way != shapes[0]) shapes.push_back(std::move(way));
  }
  return shapes;
}

// A manner of passing lines that is to replace the plain one must be that much better.
constexpr double kBetterLines = 0.85;

// Of ranks that all store at the same time: loads cost them less then than one load at a time, as it is measured.
constexpr double kBetterForAll = 0.5;

bool streams_lines(const LineCosts& lines, double better = kBetterLines) {
  return lines.streamed_ns < better * lines.plain_ns;
}

NodeChoice passing(NodeChoice way, bool streams, bool claims) {
  way.streams_shared = streams;
  way.claims_lines = claims;
  return way;
}

// In all manners of passing lines through staging memory that differ there, the expected one first. What several ranks
// read nobody can claim: of more than two the results, and the blocks that all get. Such blocks begin past the caches
// where one rank stores them all (broadcast of 1 MiB to 3, 2 near cores: 96 us against 219). Where all ranks store at
// the same time it depends: of an allgather of 4 ranks on two near cores, between which lines pass past the caches in
// 0.66 of the time, it takes 1.17 of it; on far cores, 0.2 and 0.52.
std::vector<NodeChoice> in_all_manners(const NodeChoice& way, const LineCosts& lines, const HostGroup& group) {
  const bool are_many = group.stage.groups[group.group].size() > 2;
  const bool can_claim = group.has_single_readers();
  const bool streams_all = can_claim ? streams_lines(lines) && lines.streamed_ns < lines.claimed_ns
                                     : streams_lines(lines, group.has_one_giver() ? kBetterLines : kBetterForAll);
  const bool claims = can_claim && !streams_all && claims_lines(lines);
  const bool streams_rest = claims && are_many && streams_lines(lines);
  std::vector<NodeChoice> found{passing(way, streams_all || streams_rest, claims)};
  for (const NodeChoice& other : {passing(way, are_many, true), passing(way, false, true), passing(way, true, false),
                                  passing(way, false, false)}) {
    if (other.claims_lines && !can_claim) continue;
    if (std::ranges::count(found, other) == 0) found.push_back(other);
  }
  return found;
}

}  // namespace

bool claims_lines(const LineCosts& lines) { return lines.claimed_ns < kBetterLines * lines.plain_ns; }

std::vector<NodeChoice> node_ways(const Topology& topology, const Program& program, const Stage& stage,
                                  const LineCosts& lines) {
  const auto largest = std::ranges::max_element(stage.groups, {}, [](const auto& members) { return members.size(); });
  if (largest == stage.groups.end() || largest->size() < 2) return {stage.node};
  const HostMachine machine(topology, topology.ranks[static_cast<size_t>((*largest)[0].rank)].host);
  const HostGroup group{program, stage, static_cast<size_t>(largest - stage.groups.begin()), 0, 1, machine.machine};
  std::vector<NodeChoice> found{in_all_manners(stage.node, lines, group).front()};
  if (!stage.node.asks) return found;
  const auto add = [&](NodeChoice way) {
    if (found.size() < kMostWays && std::ranges::count(found, way) == 0) found.push_back(std::move(way));
  };
  for (const NodeChoice& shape : shapes_like(group)) {
    for (NodeChoice& way : in_all_manners(shape, lines, group)) {
      add(way);
      way.streams = !way.streams;
      if (!group.gets_scratch()) add(way);
      if (shape.reads) break;  // nearly nothing is staged
    }
    NodeChoice in_short_tiles = in_all_manners(shape, lines, group).front();
    in_short_tiles.tile_bytes = kShortTile;
    if (!shape.reads) add(in_short_tiles);
  }
  // Of long buffers more than one rank copies then.
  NodeChoice staged = found.front();
  staged.reads = false;
  staged.stages_mapped = true;
  add(staged);
  staged.streams = !staged.streams;
  if (!group.gets_scratch()) add(staged);
  return found;
}

ExpectedWays expected_ways(const Topology& topology, int host, const MeasuredCosts& measured, const NodeTask& task,
                           const std::vector<NodeChoice>& ways, size_t unit_bytes, bool is_mapped) {
  if (ways.size() < 2 || !ways[0].asks) return {};
  const HostMachine here(topology, host, measured);
  const bool has_core_for_each = task.nranks <= here.machine.cpus;
  const auto time_ns = [&](const NodeChoice& way) {
    const double ns = node_task_cost(task, way, unit_bytes, 1, is_mapped ? kMapped : kOrdinary, here.machine).time_ns;
    return ns * (way.reads ? kClearly : 1);
  };
  ExpectedWays expected{.prices = std::vector<double>(ways.size())};
  std::ranges::transform(ways, expected.prices.begin(), time_ns);
  double least_ns = expected.prices[0];
  for (size_t way = 1; way < ways.size(); ++way) {
    const bool is_alike =
        ways[way].claims_lines == ways[0].claims_lines && ways[way].streams_shared == ways[0].streams_shared;
    // What prices say of that is not exact enough: calls try it, none begins with it.
    if (!is_alike || ways[way].stages_mapped || (ways[way].reads && !has_core_for_each)) continue;
    if (expected.prices[way] >= kClearlyLess * least_ns) continue;
    expected.first = way;
    least_ns = expected.prices[way];
  }
  return expected;
}

size_t small_call_bytes(const Topology& topology, int host, bool is_rooted) {
  const Topology alone = part_of(topology, topology.ranks_of(host));
  if (alone.nranks() < 2) return kMostSmallBytes;
  const auto is_one_shot = [&](size_t bytes) {
    const NodeChoice node = node_program(alone, {.bytes = bytes}).stages[0].node;
    return !node.asks && node.staged.scheme == NodeScheme::OneShot;
  };
  if (!is_one_shot(kTinyBytes)) return 0;
  if (is_rooted && alone.nranks() > HostMachine(topology, host).machine.cpus) return kMostAheadBytes;
  size_t bytes = kMostSmallBytes;
  while (!is_one_shot(bytes)) bytes /= 2;
  return bytes;
}

}  // namespace ccom
