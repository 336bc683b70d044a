// SPDX-License-Identifier: Apache-2.0
//
// Gather and Scatter over a tree, by position: positions are the ranks from the root down, each one before those below
// it, so that all units of a subtree are one run.
//
//   a rank's run:   itself, those below it that have nobody below them, then the subtrees of the others
//
// Tree::chunks 1: one message for each edge. More: the ranks of the first kind pass in so many messages, and those of
// each subtree go on as they come, all subtrees' evenly mixed: edges near the root are busy while the far ones are, and
// no slow edge holds up what comes over a fast one. A gather begins with the rank itself, a scatter is the same
// backwards and begins with the farthest, whose way is longest. As many messages for a rank as it has others below it,
// and chunks for each inner rank below it; every unit once over each edge on its way. The root permutes.
#include <algorithm>

#include "algorithms/builder.h"
#include "algorithms/collectives.h"
#include "algorithms/shape.h"
#include "base/assert.h"

namespace ccom {
namespace {

// Of several lists the elements, each list's in its order: all lists begin and end together.
template <typename T>
std::vector<T> evenly_mixed(const std::vector<std::vector<T>>& lists) {
  struct Turn {
    size_t list, index;
  };
  std::vector<Turn> turns;
  for (size_t l = 0; l < lists.size(); ++l) {
    for (size_t i = 0; i < lists[l].size(); ++i) turns.push_back({l, i});
  }
  std::ranges::stable_sort(turns, [&](const Turn& a, const Turn& b) {
    return a.index * lists[b.list].size() < b.index * lists[a.list].size();
  });
  std::vector<T> mixed;
  for (const Turn& turn : turns) mixed.push_back(lists[turn.list][turn.index]);
  return mixed;
}

}  // namespace

// A tree whose ranks are numbered so that each one's subtree is a run.
class UnitTreePlans::Subtrees {
 public:
  explicit Subtrees(const Tree& tree)
      : tree_(tree),
        children_(tree.parent.size()),
        inner_(children_),
        first_(tree.parent.size()),
        sizes_(subtree_sizes(tree)) {
    const auto ranks = static_cast<Rank>(tree.parent.size());
    std::vector<bool> is_inner(tree.parent.size());
    for (const Rank parent : tree.parent) {
      if (parent >= 0) is_inner[static_cast<size_t>(parent)] = true;
    }
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Rank parent = tree.parent[at(rank)];
      if (parent >= 0) (is_inner[at(rank)] ? inner_ : children_)[at(parent)].push_back(rank);
    }
    for (std::vector<Rank>& leaves : children_) take_turns(leaves);
    number();
  }

  Rank parent(Rank rank) const { return tree_.parent[at(rank)]; }
  bool is_leaf(Rank rank) const { return sizes_[at(rank)] == 1; }
  Range run(Rank rank) const { return {first_[at(rank)], sizes_[at(rank)]}; }
  // Those without children first.
  const std::vector<Rank>& leaves(Rank rank) const { return children_[at(rank)]; }
  const std::vector<Rank>& inner(Rank rank) const { return inner_[at(rank)]; }
  NumberList order() const { return NumberList(order_); }
  NumberList positions() const { return NumberList(first_); }
  bool is_identity() const {
    for (uint32_t i = 0; i < order_.size(); ++i) {
      if (order_[i] != i) return false;
    }
    return true;
  }

  // What a rank passes up, in the order in which it does.
  std::vector<Range> pieces(Rank rank) const {
    if (tree_.chunks == 1 || is_leaf(rank)) return {run(rank)};
    std::vector<std::vector<Range>> lists(1);
    const auto own = static_cast<uint32_t>(leaves(rank).size()) + 1, chunks = static_cast<uint32_t>(tree_.chunks);
    for (uint32_t turn = 0; turn < chunks; ++turn) {
      const uint32_t begin = own * turn / chunks, end = own * (turn + 1) / chunks;
      if (begin < end) lists[0].push_back({first_[at(rank)] + begin, end - begin});
    }
    for (const Rank child : inner(rank)) lists.push_back(pieces(child));
    return evenly_mixed(lists);
  }
  std::vector<Range> pieces_down(Rank rank) const {
    std::vector<Range> pieces_up = pieces(rank);
    return {pieces_up.rbegin(), pieces_up.rend()};
  }

 private:
  static size_t at(Rank rank) { return static_cast<size_t>(rank); }

  // Ranks of one place, which have consecutive numbers, share the way to their parent: one of each place comes first,
  // then another of each.
  static void take_turns(std::vector<Rank>& leaves) {
    std::vector<std::pair<Rank, Rank>> turns;  // the number in a row of consecutive ones, the rank
    for (const Rank rank : leaves) {
      const bool follows = !turns.empty() && turns.back().second == rank - 1;
      turns.emplace_back(follows ? turns.back().first + 1 : 0, rank);
    }
    std::ranges::sort(turns);
    std::ranges::transform(turns, leaves.begin(), &std::pair<Rank, Rank>::second);
  }

  void number() {
    std::vector<Rank> open{tree_.root};
    while (!open.empty()) {
      const Rank rank = open.back();
      open.pop_back();
      first_[at(rank)] = static_cast<uint32_t>(order_.size());
      order_.push_back(static_cast<uint32_t>(rank));
      for (const Rank leaf : leaves(rank)) {
        first_[at(leaf)] = static_cast<uint32_t>(order_.size());
        order_.push_back(static_cast<uint32_t>(leaf));
      }
      open.insert(open.end(), inner(rank).rbegin(), inner(rank).rend());
    }
  }

  const Tree& tree_;
  std::vector<std::vector<Rank>> children_, inner_;  // by rank: without and with others below them
  std::vector<uint32_t> first_, sizes_, order_;
};

class UnitTreePlans::UnitTreeWriter {
 public:
  UnitTreeWriter(const Subtrees& tree, Plan plan)
      : tree_(tree), rank_(plan.rank), parent_(tree.parent(rank_)), steps_(std::move(plan)) {}

  Plan gather() {
    if (parent_ >= 0 && tree_.is_leaf(rank_)) {
      steps_.send_from(parent_, {Buffer::Input, 0}, first(), 1);
      return std::move(steps_).finish();
    }
    const bool permutes = parent_ < 0 && !tree_.is_identity();
    place(Buffer::Output, permutes);
    steps_.copy({Buffer::Input, 0}, region_, first(), 1);
    for (const auto& [child, piece] : of_children(&Subtrees::pieces)) {
      steps_.receive_into(child, at(piece), piece.first, piece.count);
    }
    if (parent_ >= 0) {
      for (const Range& piece : tree_.pieces(rank_)) {
        steps_.send_from(parent_, at(piece), piece.first, piece.count);
      }
    }
    if (permutes) steps_.permute(region_, {Buffer::Output, 0}, 0, tree_.positions());
    return std::move(steps_).finish();
  }

  Plan scatter() {
    if (parent_ >= 0 && tree_.is_leaf(rank_)) {
      steps_.receive_into(parent_, {Buffer::Output, 0}, first(), 1);
      return std::move(steps_).finish();
    }
    const bool permutes = parent_ < 0 && !tree_.is_identity();
    place(Buffer::Input, permutes);
    if (permutes) steps_.permute({Buffer::Input, 0}, region_, 0, tree_.order());
    if (parent_ >= 0) {
      for (const Range& piece : tree_.pieces_down(rank_)) {
        steps_.receive_into(parent_, at(piece), piece.first, piece.count);
      }
    }
    for (const auto& [child, piece] : of_children(&Subtrees::pieces_down)) {
      steps_.send_from(child, at(piece), piece.first, piece.count);
    }
    steps_.copy(region_, {Buffer::Output, 0}, first(), 1);
    return std::move(steps_).finish();
  }

 private:
  uint32_t first() const { return tree_.run(rank_).first; }
  Location at(Range piece) const { return region_.at(piece.first - first()); }

  // The root's units lie in its buffer if nothing is permuted.
  void place(Buffer at_root, bool permutes) {
    if (parent_ < 0 && !permutes) {
      region_ = {at_root, 0};
    } else {
      region_ = {Buffer::Scratch, steps_.new_scratch(tree_.run(rank_).count, first())};
    }
  }

  // Of the leaves one unit each, of the others piece by piece.
  std::vector<std::pair<Rank, Range>> of_children(std::vector<Range> (Subtrees::*pieces_of)(Rank) const) const {
    std::vector<std::vector<std::pair<Rank, Range>>> lists;
    for (const Rank child : tree_.inner(rank_)) {
      lists.emplace_back();
      for (const Range& piece : (tree_.*pieces_of)(child)) lists.back().emplace_back(child, piece);
    }
    lists.emplace_back();
    for (const Rank leaf : tree_.leaves(rank_)) lists.back().emplace_back(leaf, tree_.run(leaf));
    return evenly_mixed(lists);
  }

  const Subtrees& tree_;
  const Rank rank_, parent_;
  StepWriter steps_;
  Location region_{};
};

std::vector<int> UnitTreePlans::messages(const Tree& tree) {
  std::vector<int> messages(tree.parent.size(), 1);
  if (tree.chunks == 1) return messages;
  const Subtrees subtrees(tree);
  for (Rank rank = 0; rank < static_cast<Rank>(messages.size()); ++rank) {
    if (subtrees.is_leaf(rank)) continue;
    --messages[static_cast<size_t>(rank)];
    const int own = std::min(static_cast<int>(subtrees.leaves(rank).size()) + 1, tree.chunks);
    for (Rank at = rank; at >= 0; at = subtrees.parent(at)) messages[static_cast<size_t>(at)] += own;
  }
  return messages;
}

UnitTreePlans::UnitTreePlans(const Tree& tree)
    : subtrees_(std::make_shared<const Subtrees>(tree)), order_(subtrees_->order()) {}

Plan UnitTreePlans::make(const Call& call, const std::string& algorithm) const {
  CCOM_ASSERT(call.collective == Collective::Gather || call.collective == Collective::Scatter);
  Plan plan = empty_plan(call, algorithm);
  plan.order = order_;
  UnitTreeWriter writer(*subtrees_, std::move(plan));
  return call.collective == Collective::Gather ? writer.gather() : writer.scatter();
}

}  // namespace ccom
