// SPDX-License-Identifier: Apache-2.0
//
// By what each member holds after a stage or level: a run of ranks, whose contributions it has in order. Members whose
// runs follow one another, combined in list order, hold the run of all. Two are always combined in order, because a
// ReceiveReduce knows which of two ranks is the lower one. All ranks' contributions that are combined in one place and
// in one step make the canonical expression.
#include "algorithms/rank_order.h"

#include <algorithm>

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

// Of members that hold one contribution each.
SumOrder kept_order(const Level& level, size_t members) {
  switch (level.pattern) {
    case Pattern::Direct:
    case Pattern::OneShot: return SumOrder::Canonical;
    case Pattern::RecursiveDoubling:
      if (!level.dims.empty()) return SumOrder::Any;
      return members <= 2 ? SumOrder::Canonical : SumOrder::Ranks;
    case Pattern::Ring:
    case Pattern::Circulant:
    case Pattern::Bine:
    case Pattern::BineLatency: return members <= 2 ? SumOrder::Canonical : SumOrder::Any;
    default: return members <= 1 ? SumOrder::Canonical : SumOrder::Any;
  }
}

// What is left of `order` once `given` of all ranks' contributions, each perhaps a sum already, are combined by members
// that keep `own`.
SumOrder after(SumOrder order, SumOrder own, size_t given, int nranks) {
  if (given <= 1) return std::min(order, own == SumOrder::Any ? SumOrder::Any : SumOrder::Canonical);
  return std::min({order, own, given < static_cast<size_t>(nranks) ? SumOrder::Ranks : SumOrder::Canonical});
}

// The same for Staged: down the levels and through the core.
SumOrder kept_order(const Staged& shape, int nranks) {
  std::vector<RankRun> held = each_its_own(nranks);
  SumOrder order = SumOrder::Canonical;
  for (const auto* levels : {&shape.levels, &shape.core}) {
    for (const Level& level : *levels) {
      for (const std::vector<Rank>& group : level.groups) {
        order = after(order, kept_order(level, group.size()), group.size(), nranks);
        std::vector<RankRun> runs;
        runs.reserve(group.size());
        for (const Rank rank : group) runs.push_back(held[static_cast<size_t>(rank)]);
        const RankRun all = joined(runs);
        if (order == SumOrder::Any || !all.is_in_order()) return SumOrder::Any;
        for (const Rank rank : group) held[static_cast<size_t>(rank)] = all;
      }
    }
  }
  return std::ranges::all_of(held,
                             [&](const RankRun& run) {
                               return run == RankRun{0, nranks - 1};
                             })
             ? order
             : SumOrder::Any;
}

// A rank combines its own part and its children's in the order of their ranks: right if each subtree is a run, and at
// once if the root does it alone.
SumOrder kept_order(const Tree& tree) {
  if (tree.gathers) return SumOrder::Canonical;
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
  if (!std::ranges::all_of(subtrees, [](const Subtree& s) { return s.last - s.first + 1 == s.ranks; }))
    return SumOrder::Any;
  const bool is_star = std::ranges::all_of(tree.parent, [&](Rank parent) { return parent < 0 || parent == tree.root; });
  return is_star ? SumOrder::Canonical : SumOrder::Ranks;
}

SumOrder kept_order(const MessageAlgorithm& algorithm, int members) {
  switch (algorithm.kind) {
    case MessageAlgorithm::Kind::Staged: return kept_order(algorithm.staged, members);
    case MessageAlgorithm::Kind::Tree: return kept_order(algorithm.tree);
    case MessageAlgorithm::Kind::Trees: {
      SumOrder order = SumOrder::Canonical;
      for (const Tree& tree : algorithm.trees) order = std::min(order, kept_order(tree));
      return order;
    }
    case MessageAlgorithm::Kind::Blocks: return SumOrder::Canonical;
    default: return SumOrder::Any;
  }
}

// Sums of memory domains are exchanged between ranks of several.
SumOrder kept_order(const Stage& stage, size_t members) {
  if (stage.where != Stage::Where::Host) return kept_order(stage.messages, static_cast<int>(members));
  return stage.node.has_scheme(NodeScheme::Domains) ? SumOrder::Any : SumOrder::Canonical;
}

}  // namespace

// Sums that cross hosts in another type are asked for no order.
SumOrder sum_order(const Program& program) {
  if (program.wire() != UnitType::Call) return SumOrder::Any;
  std::vector<RankRun> held = each_its_own(program.nranks);
  RankRun result;
  SumOrder order = SumOrder::Canonical;
  for (const Stage& stage : program.stages) {
    if (!stage.sums) continue;
    if (stage.where == Stage::Where::All) return kept_order(stage.messages, program.nranks);
    for (const std::vector<StageMember>& group : stage.groups) {
      std::vector<RankRun> runs;
      runs.reserve(group.size());
      for (const StageMember& member : group) {
        if (!program.gives(member).empty()) runs.push_back(held[static_cast<size_t>(member.rank)]);
      }
      order = after(order, kept_order(stage, group.size()), runs.size(), program.nranks);
      result = joined(runs);
      if (order == SumOrder::Any || !result.is_in_order()) return SumOrder::Any;
      for (const StageMember& member : group) {
        if (!program.gets(member).empty()) held[static_cast<size_t>(member.rank)] = result;
      }
    }
  }
  return result == RankRun{0, program.nranks - 1} ? order : SumOrder::Any;
}

}  // namespace ccom
