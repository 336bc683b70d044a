// SPDX-License-Identifier: Apache-2.0
//
// By what each member holds after a stage or level: a run of ranks, whose contributions it has in order. Members whose
// runs follow one another, combined in list order, hold the run of all. Two are always combined in order, because a
// ReceiveReduce knows which of two ranks is the lower one.
#include "algorithms/rank_order.h"

#include <algorithm>

#include "plan/value.h"

namespace ccom {
namespace {

std::vector<RankRun> each_its_own(int nranks) {
  std::vector<RankRun> runs(static_cast<size_t>(nranks));
  for (Rank rank = 0; rank < nranks; ++rank) runs[static_cast<size_t>(rank)] = {rank, rank};
  return runs;
}

// The run of all, if they follow one another.
RankRun joined(const std::vector<RankRun>& runs) {
  RankRun all = runs.empty() ? RankRun() : runs[0];
  for (size_t i = 1; i < runs.size(); ++i) {
    if (!all.is_in_order() || !runs[i].is_in_order() || runs[i].first != all.last + 1) return {};
    all.last = runs[i].last;
  }
  return all;
}

bool combines_in_list_order(const Level& level, size_t members) {
  switch (level.pattern) {
    case Pattern::Direct:
    case Pattern::OneShot: return true;
    case Pattern::RecursiveDoubling: return level.dims.empty();
    case Pattern::Ring:
    case Pattern::Circulant: return members <= 2;
    default: return members <= 1;
  }
}

// The same for Staged: down the levels and through the core.
bool keeps_order(const Staged& shape, int nranks) {
  std::vector<RankRun> held = each_its_own(nranks);
  for (const auto* levels : {&shape.levels, &shape.core}) {
    for (const Level& level : *levels) {
      for (const std::vector<Rank>& group : level.groups) {
        if (!combines_in_list_order(level, group.size())) return false;
        std::vector<RankRun> runs;
        runs.reserve(group.size());
        for (const Rank rank : group) runs.push_back(held[static_cast<size_t>(rank)]);
        const RankRun all = joined(runs);
        if (!all.is_in_order()) return false;
        for (const Rank rank : group) held[static_cast<size_t>(rank)] = all;
      }
    }
  }
  return std::ranges::all_of(held, [&](const RankRun& run) { return run == RankRun{0, nranks - 1}; });
}

// A rank combines its own part and its children's in the order of their ranks: right if each subtree is a run.
bool keeps_order(const Tree& tree) {
  if (tree.gathers) return true;
  struct Subtree {
    Rank first, last, ranks;
  };
  std::vector<Subtree> subtrees(tree.parent.size(), {static_cast<Rank>(tree.parent.size()), -1, 0});
  for (Rank rank = 0; rank < static_cast<Rank>(tree.parent.size()); ++rank) {
    for (Rank at = rank; at >= 0; at = tree.parent[static_cast<size_t>(at)]) {
      Subtree& subtree = subtrees[static_cast<size_t>(at)];
      subtree = {std::min(subtree.first, rank), std::max(subtree.last, rank), subtree.ranks + 1};
    }
  }
  return std::ranges::all_of(subtrees, [](const Subtree& s) { return s.last - s.first + 1 == s.ranks; });
}

bool keeps_order(const MessageAlgorithm& algorithm, int members) {
  switch (algorithm.kind) {
    case MessageAlgorithm::Kind::Staged: return keeps_order(algorithm.staged, members);
    case MessageAlgorithm::Kind::Tree: return keeps_order(algorithm.tree);
    case MessageAlgorithm::Kind::Trees:
      return std::ranges::all_of(algorithm.trees, [](const Tree& tree) { return keeps_order(tree); });
    case MessageAlgorithm::Kind::Blocks: return true;
    default: return false;
  }
}

// Sums of memory domains are exchanged between ranks of several.
bool has_domains(const NodeChoice& choice) {
  return choice.staged.scheme == NodeScheme::Domains || choice.readable.scheme == NodeScheme::Domains ||
         choice.mapped.scheme == NodeScheme::Domains;
}

bool is_in_list_order(const Stage& stage, size_t members) {
  return stage.where == Stage::Where::Host ? !has_domains(stage.node)
                                           : keeps_order(stage.messages, static_cast<int>(members));
}

}  // namespace

bool keeps_rank_order(const Program& program) {
  std::vector<RankRun> held = each_its_own(program.nranks);
  RankRun result;
  for (const Stage& stage : program.stages) {
    if (!stage.sums) continue;
    if (stage.where == Stage::Where::All) return keeps_order(stage.messages, program.nranks);
    for (const std::vector<StageMember>& group : stage.groups) {
      if (!is_in_list_order(stage, group.size())) return false;
      std::vector<RankRun> runs;
      runs.reserve(group.size());
      for (const StageMember& member : group) {
        if (!program.gives(member).empty()) runs.push_back(held[static_cast<size_t>(member.rank)]);
      }
      result = joined(runs);
      if (!result.is_in_order()) return false;
      for (const StageMember& member : group) {
        if (!program.gets(member).empty()) held[static_cast<size_t>(member.rank)] = result;
      }
    }
  }
  return result == RankRun{0, program.nranks - 1};
}

}  // namespace ccom
