// SPDX-License-Identifier: Apache-2.0
#include "planner/programs.h"

#include <algorithm>

#include "planner/node_choice.h"

namespace ccom {
namespace {

// Units of scratch per unit of data, on the rank that needs most.
double scratch_units(const MessageAlgorithm& algorithm, Collective collective, int nranks) {
  if (algorithm.kind == MessageAlgorithm::Kind::Tree && algorithm.tree.gathers) {
    return (collective == Collective::ReduceScatter ? nranks : 1) * (nranks + 1.0);
  }
  if (algorithm.kind == MessageAlgorithm::Kind::Tree && algorithm.tree.by_position) return nranks;
  if (algorithm.kind == MessageAlgorithm::Kind::Tree) {
    std::vector<double> parts(algorithm.tree.parent.size(), 2);  // a rank's own part, and the sum
    for (const Rank parent : algorithm.tree.parent) {
      if (parent >= 0) ++parts[static_cast<size_t>(parent)];
    }
    return *std::ranges::max_element(parts);
  }
  const bool exchanges = collective == Collective::AllToAll;
  if (exchanges) return algorithm.kind == MessageAlgorithm::Kind::Staged ? 4.0 * nranks : 0;  // and what passes by
  const bool is_whole = collective == Collective::ReduceScatter || algorithm.staged.by_position;
  double units = is_whole ? nranks : 0;  // partial sums, or units by position
  double share = collective == Collective::ReduceScatter ? nranks : 1;
  for (const Level& level : algorithm.staged.levels) {
    const auto members = static_cast<double>(level.groups.empty() ? 1 : level.groups[0].size());
    if (level.pattern == Pattern::Direct && members > 2) units += share * members / level.owners;
    share /= level.owners;
  }
  for (const Level& core : algorithm.staged.core) units += share * static_cast<double>(core.groups[0].size());
  return units;
}

// Can every rank's plan work on an element range of each unit? Runs of several units must not occur.
bool can_be_tiled(const MessageAlgorithm& algorithm, Collective collective) {
  if (reduces(collective) && !is_per_rank(collective)) return true;
  if (algorithm.kind == MessageAlgorithm::Kind::Tree && algorithm.tree.gathers) return true;
  if (algorithm.kind == MessageAlgorithm::Kind::Tree && algorithm.tree.by_position) return true;
  const bool is_staged = algorithm.kind == MessageAlgorithm::Kind::Staged;
  if (is_staged && (collective == Collective::AllToAll || algorithm.staged.by_position)) return true;
  if (collective != Collective::ReduceScatter || algorithm.kind != MessageAlgorithm::Kind::Staged) return false;
  return algorithm.staged.levels.size() == 1 && algorithm.staged.levels[0].pattern != Pattern::Circulant &&
         algorithm.staged.levels[0].pattern != Pattern::Bine;
}

size_t tile_bytes(const MessageAlgorithm& algorithm, Collective collective, int nranks, size_t scratch_bytes) {
  constexpr size_t kGranule = size_t{16} << 10;
  if (!can_be_tiled(algorithm, collective)) return 0;
  const double units = scratch_units(algorithm, collective, nranks);
  if (units == 0) return 0;
  const auto bytes = static_cast<size_t>(static_cast<double>(scratch_bytes) / units);
  return std::max(bytes / kGranule, size_t{1}) * kGranule;
}

Program whole_program(const std::string& name, const Topology& topology, const Question& question, Stage::Where where) {
  Program program{
      .algorithm = name, .collective = question.collective, .nranks = topology.nranks(), .root = question.root};
  program.is_v = question.is_v;
  program.stages.push_back({.where = where,
                            .collective = question.collective,
                            .root = question.root,
                            .sums = reduces(question.collective),
                            .completes = reduces(question.collective)});
  return program;
}

// Blocks of a rank's input or output, in order.
std::vector<BlockAt> in_order(const std::vector<uint32_t>& blocks, Buffer buffer) {
  std::vector<BlockAt> list;
  for (const uint32_t block : blocks) list.push_back({block, buffer, static_cast<uint32_t>(list.size())});
  return list;
}

}  // namespace

Program message_program(const Topology& topology, const Settings& settings, const Question& question,
                        MessageAlgorithm algorithm) {
  Program program = whole_program(algorithm.name, topology, question, Stage::Where::All);
  program.tile_bytes = tile_bytes(algorithm, question.collective, topology.nranks(), settings.scratch_bytes);
  program.stages[0].messages = std::move(algorithm);
  return program;
}

Program node_program(const Topology& topology, const Question& question) {
  Program program = whole_program("node", topology, question, Stage::Where::Host);
  Stage& stage = program.stages[0];
  const NodeTask task = node_task(question.collective, topology.nranks(), question.root);
  std::vector<StageMember>& members = stage.groups.emplace_back();
  for (Rank rank = 0; rank < topology.nranks(); ++rank) {
    const auto i = static_cast<size_t>(rank);
    members.push_back({rank, program.add_list(in_order(task.blocks.gives[i], Buffer::Input)),
                       program.add_list(in_order(task.blocks.gets[i], Buffer::Output))});
  }
  stage.node = node_choice(topology, question, program, stage);
  return program;
}

}  // namespace ccom
