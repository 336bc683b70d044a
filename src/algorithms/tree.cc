// SPDX-License-Identifier: Apache-2.0
//
// Collectives over any spanning tree: k-nomial trees on a switched network, breadth-first trees on a fabric. The rooted
// ones by nature; the others as a way up and a way down, where a fabric has no better structure.
//
// Depth d steps of the tree; broadcast and reduce send n bytes per edge, gather and scatter the subtree's units.
// `chunks` blocks travel one behind another, so that a long vector needs about (d + chunks) / chunks of the time of
// one. Those with most ranks below them are sent to first. Reduce combines an inner rank's children and itself in one
// go, in the order of their ranks: one rounding per level. Source: van de Geijn et al., as reviewed in Chan et al.,
// Collective communication: theory, practice, and experience, 2007.
//
// A tree that gathers (Tree::gathers) sends every contribution up to the root, p n bytes, and combines them there in
// rank order: for operators that do not commute, where no tree of the fabric keeps the order.
//
// Several trees carry a share of the vector each: double_tree.cc, planner/column_trees.h. The first chunk of each goes
// before the second of any, so that the wires of all of them are at work from the start. Up the trees that is not
// enough: a leaf of one tree has all of its chunks at once and would send them before those of others that pass. With
// Tree::lead every rank sends a chunk when it is due, which is a broadcast's order backwards.
#include <algorithm>
#include <functional>
#include <numeric>

#include "algorithms/builder.h"
#include "algorithms/collectives.h"
#include "base/assert.h"

namespace ccom {
namespace {

// A tree as one rank sees it.
struct View {
  Rank parent = -1;
  std::vector<Rank> children;               // ascending
  std::vector<size_t> downwards;            // the same by index, those with most ranks below them first
  std::vector<std::vector<Rank>> subtrees;  // of the children: their ranks, ascending
  std::vector<Rank> own_subtree;            // with this rank, ascending
};

View view_of(const TreePlans& trees, size_t index, Rank rank, bool with_subtrees) {
  const Tree& tree = trees.trees()[index];
  const auto n = static_cast<Rank>(tree.parent.size());
  const std::span<const Rank> children = trees.children(index, rank);
  View view{tree.parent[static_cast<size_t>(rank)], {children.begin(), children.end()}, {}, {}, {}};
  view.downwards.resize(view.children.size());
  std::iota(view.downwards.begin(), view.downwards.end(), size_t{0});
  if (view.children.size() > 1) {
    std::ranges::stable_sort(view.downwards, std::ranges::greater(),
                             [&](size_t c) { return trees.ranks_from(index, view.children[c]); });
  }
  if (!with_subtrees) return view;
  view.subtrees.resize(view.children.size());
  for (Rank r = 0; r < n; ++r) {
    // Climb from r until `rank` or one of its children is met.
    Rank below = -1;
    Rank at = r;
    while (at != rank && at >= 0) {
      below = at;
      at = tree.parent[static_cast<size_t>(at)];
    }
    if (at != rank) continue;
    view.own_subtree.push_back(r);
    const auto child = std::ranges::find(view.children, below);
    if (child != view.children.end()) view.subtrees[static_cast<size_t>(child - view.children.begin())].push_back(r);
  }
  return view;
}

// Calls fn(first, count) for each run of consecutive ranks. Both ends of an edge cut its subtree alike.
template <typename Fn>
void for_each_rank_run(const std::vector<Rank>& ranks, Fn fn) {
  for (size_t i = 0; i < ranks.size();) {
    size_t count = 1;
    while (i + count < ranks.size() && ranks[i + count] == ranks[i] + static_cast<Rank>(count)) ++count;
    fn(static_cast<uint32_t>(ranks[i]), static_cast<uint32_t>(count));
    i += count;
  }
}

// The blocks of a vector that go through one tree.
struct Share {
  uint32_t first, count;
  uint8_t channel = 0;                    // to and from the parent
  uint8_t egress = 0;                     // to the parent
  std::vector<uint8_t> child_channels{};  // of children in their order; empty: 0
  uint8_t channel_of(size_t child) const { return child_channels.empty() ? uint8_t{0} : child_channels[child]; }
};

// Block b of the share.
void broadcast_block(Builder& builder, const View& view, const Share& share, uint32_t b, Location at_root) {
  Location home{at_root.buffer, at_root.index + b};
  if (view.parent >= 0) {
    home = {Buffer::Output, b};
    builder.receive_into(view.parent, home, b, 1, share.channel);
  }
  for (const size_t c : view.downwards) builder.send_from(view.children[c], home, b, 1, share.channel_of(c));
}

// The root's parts of each block lie in rank order. Returns where its sums lie.
Location reduce_at_root(Builder& builder, const View& view, Rank rank, const Share& share, Buffer result) {
  const bool is_root = view.parent < 0;
  const auto parts = static_cast<uint32_t>(view.own_subtree.size());
  const uint32_t sums = is_root && result == Buffer::Scratch ? builder.new_scratch(share.count) : 0;
  const uint32_t slots = parts > 1 ? builder.new_scratch(parts * share.count) : 0;
  for (uint32_t i = 0; i < share.count; ++i) {
    const uint32_t b = share.first + i;
    const auto place = [&](Rank of) -> Location {
      const auto found = std::ranges::lower_bound(view.own_subtree, of) - view.own_subtree.begin();
      return {Buffer::Scratch, slots + i * parts + static_cast<uint32_t>(found)};
    };
    if (is_root) builder.copy({Buffer::Input, b}, place(rank), b, 1);
    for (size_t c = 0; c < view.children.size(); ++c) {
      for (const Rank from : view.subtrees[c]) {
        builder.receive_into(view.children[c], place(from), b, 1, share.channel_of(c));
      }
    }
    const Location sum{result, result == Buffer::Scratch ? sums + i : b};
    if (is_root) builder.reduce(slots + i * parts, parts, sum, b, 1, true);
    for (size_t of = 0; !is_root && of < view.own_subtree.size(); ++of) {
      const Rank from = view.own_subtree[of];
      builder.send_from(view.parent, from == rank ? Location{Buffer::Input, b} : place(from), b, 1, share.channel);
    }
  }
  return {result, sums};
}

// The sums of this rank and those below it, block by block.
class SumsOfTree {
 public:
  SumsOfTree(Builder& builder, const View& view, Rank rank, Share share, Buffer result)
      : builder_(builder), view_(view), share_(std::move(share)), result_(result) {
    parts_ = static_cast<uint32_t>(view.children.size()) + 1;
    sums_ = result == Buffer::Scratch && parts_ > 1 ? builder.new_scratch(share_.count) : 0;
    slots_ = parts_ > 1 ? builder.new_scratch(parts_ * share_.count) : 0;
    own_ = static_cast<uint32_t>(std::ranges::lower_bound(view.children, rank) - view.children.begin());
  }

  // The i-th block of the share.
  void add(uint32_t i) {
    const uint32_t b = share_.first + i;
    Location home{Buffer::Input, b};
    if (parts_ > 1) {
      const uint32_t first = slots_ + i * parts_;
      builder_.copy(home, {Buffer::Scratch, first + own_}, b, 1);
      for (uint32_t c = 0; c + 1 < parts_; ++c) {
        builder_.receive_into(view_.children[c], {Buffer::Scratch, first + c + (c < own_ ? 0 : 1)}, b, 1,
                              share_.channel_of(c));
      }
      home = {result_, result_ == Buffer::Scratch ? sums_ + i : b};
      builder_.reduce(first, parts_, home, b, 1, view_.parent < 0);
    }
    if (view_.parent >= 0) builder_.send_from(view_.parent, home, b, 1, share_.channel, share_.egress);
  }

  // Where this rank's sums lie.
  Location where() const { return parts_ > 1 ? Location{result_, sums_} : Location{Buffer::Input, 0}; }

 private:
  Builder& builder_;
  const View& view_;
  Share share_;
  Buffer result_;
  uint32_t parts_, sums_, slots_, own_;
};

// Returns where this rank's sums lie.
Location reduce(Builder& builder, const View& view, Rank rank, const Share& share, Buffer result) {
  SumsOfTree sums(builder, view, rank, share, result);
  for (uint32_t i = 0; i < share.count; ++i) sums.add(i);
  return sums.where();
}

// Where a rank keeps the units of its subtree on their way: the root where it likes, a leaf in its own buffer, others
// in scratch.
class UnitPlaces {
 public:
  UnitPlaces(Builder& builder, const View& view, Location at_root, Location own) : view_(view) {
    if (view.parent < 0) {
      first_ = at_root;
    } else if (view.children.empty()) {
      first_ = own;
    } else {
      first_ = {Buffer::Scratch, builder.new_scratch(static_cast<uint32_t>(view.own_subtree.size()))};
    }
  }
  Location operator()(uint32_t rank) const {
    if (view_.parent < 0) return first_.at(rank);
    const auto found = std::ranges::lower_bound(view_.own_subtree, static_cast<Rank>(rank));
    return first_.at(static_cast<uint32_t>(found - view_.own_subtree.begin()));
  }

 private:
  const View& view_;
  Location first_;
};

// `at_root`: where the root collects the units.
void gather(Builder& builder, const View& view, Rank rank, Location at_root = {Buffer::Output, 0}) {
  const bool is_root = view.parent < 0;
  const bool is_leaf = view.children.empty();
  const UnitPlaces place(builder, view, at_root, {Buffer::Input, 0});
  const auto self = static_cast<uint32_t>(rank);
  if (!is_leaf || is_root) builder.copy({Buffer::Input, 0}, place(self), self, 1);
  for (size_t c = 0; c < view.children.size(); ++c) {
    for_each_rank_run(view.subtrees[c], [&](uint32_t first, uint32_t count) {
      builder.receive_into(view.children[c], place(first), first, count);
    });
  }
  if (is_root) return;
  for_each_rank_run(view.own_subtree, [&](uint32_t first, uint32_t count) {
    builder.send_from(view.parent, place(first), first, count);
  });
}

// `at_root`: from where the root hands out the units.
void scatter(Builder& builder, const View& view, Rank rank, Location at_root = {Buffer::Input, 0}) {
  const bool is_root = view.parent < 0;
  const bool is_leaf = view.children.empty();
  const UnitPlaces place(builder, view, at_root, {Buffer::Output, 0});
  if (!is_root) {
    for_each_rank_run(view.own_subtree, [&](uint32_t first, uint32_t count) {
      builder.receive_into(view.parent, place(first), first, count);
    });
  }
  for (const size_t c : view.downwards) {
    for_each_rank_run(view.subtrees[c], [&](uint32_t first, uint32_t count) {
      builder.send_from(view.children[c], place(first), first, count);
    });
  }
  const auto self = static_cast<uint32_t>(rank);
  if (!is_leaf || is_root) builder.copy(place(self), {Buffer::Output, 0}, self, 1);
}

// Calls fn(tree, i) for the i-th block of each tree before the next one of any.
template <typename Fn>
void for_each_block(const std::vector<Share>& shares, Fn fn) {
  uint32_t most = 0;
  for (const Share& share : shares) most = std::max(most, share.count);
  for (uint32_t i = 0; i < most; ++i) {
    for (size_t t = 0; t < shares.size(); ++t) {
      if (i < shares[t].count) fn(t, i);
    }
  }
}

// Of each tree the blocks that go through it, one share after the other.
std::vector<Share> shares_of(const TreePlans& plans, Rank rank) {
  std::vector<Share> shares;
  uint32_t blocks = 0;
  for (size_t t = 0; t < plans.trees().size(); ++t) {
    const auto chunks = static_cast<uint32_t>(plans.trees()[t].chunks);
    const Tree& tree = plans.trees()[t];
    const uint8_t egress = tree.egress.empty() ? uint8_t{0} : tree.egress[static_cast<size_t>(rank)];
    shares.push_back({blocks, chunks, plans.channel(t, rank), egress});
    for (const Rank child : plans.children(t, rank)) shares.back().child_channels.push_back(plans.channel(t, child));
    blocks += chunks;
  }
  return shares;
}

// Broadcast, Reduce and AllReduce: up the trees, down the trees.
Plan vector_plan(const Call& call, const TreePlans& plans, const std::string& algorithm) {
  const std::vector<Tree>& trees = plans.trees();
  const bool up = !only_root_reads(call.collective);
  const bool down = !only_root_writes(call.collective);
  const bool is_root = trees[0].parent[static_cast<size_t>(call.rank)] < 0;
  const std::vector<Share> shares = shares_of(plans, call.rank);
  std::vector<View> views;
  for (size_t t = 0; t < trees.size(); ++t) views.push_back(view_of(plans, t, call.rank, trees[t].gathers));
  Plan plan = empty_plan(call, algorithm);
  const uint32_t blocks = plan.blocks_per_unit = shares.back().first + shares.back().count;
  const bool in_order = up && !down && !trees[0].gathers && !trees[0].lead.empty();
  Builder builder(std::move(plan));
  if (up && call.nranks > 1) {
    std::vector<SumsOfTree> sums;
    for (size_t t = 0; t < trees.size(); ++t) {
      const Buffer result = views[t].parent < 0 ? Buffer::Output : Buffer::Scratch;
      if (trees[t].gathers) {
        reduce_at_root(builder, views[t], call.rank, shares[t], result);
      } else {
        sums.emplace_back(builder, views[t], call.rank, shares[t], result);
      }
    }
    CCOM_ASSERT(sums.empty() || sums.size() == trees.size());
    if (in_order) {
      for (const auto& [when, t, i] : plans.blocks_due(call.rank)) sums[t].add(i);
    } else if (!sums.empty()) {
      for_each_block(shares, [&](size_t t, uint32_t i) { sums[t].add(i); });
    }
  }
  if (up && call.nranks == 1) builder.copy({Buffer::Input, 0}, {Buffer::Output, 0}, 0, blocks, true);
  const Location at_root{up ? Buffer::Output : Buffer::Input, 0};
  for_each_block(shares, [&](size_t t, uint32_t i) {
    if (down) broadcast_block(builder, views[t], shares[t], shares[t].first + i, at_root);
  });
  if (!up && is_root) builder.copy({Buffer::Input, 0}, {Buffer::Output, 0}, 0, blocks);
  return std::move(builder).finish();
}

// Gather, Scatter, ReduceScatter, AllGather and Barrier: units are blocks.
Plan unit_plan(const Call& call, const TreePlans& plans, const std::string& algorithm) {
  const Tree& tree = plans.trees()[0];
  const View view = view_of(plans, 0, call.rank, true);
  const auto n = static_cast<uint32_t>(call.nranks);
  Builder builder(empty_plan(call, algorithm));
  switch (call.collective) {
    case Collective::Gather: gather(builder, view, call.rank); break;
    case Collective::Scatter: scatter(builder, view, call.rank); break;
    case Collective::ReduceScatter: {  // summed at the root, then handed out
      const Location sums = tree.gathers && n > 1 ? reduce_at_root(builder, view, call.rank, {0, n}, Buffer::Scratch)
                                                  : reduce(builder, view, call.rank, {0, n}, Buffer::Scratch);
      if (call.nranks == 1) {
        builder.copy(sums, {Buffer::Output, 0}, 0, 1, true);
      } else {
        scatter(builder, view, call.rank, sums);
      }
      break;
    }
    default:  // collected at the root, then handed to everybody
      gather(builder, view, call.rank);
      for (uint32_t b = 0; b < n; ++b) broadcast_block(builder, view, {0, n}, b, {Buffer::Output, 0});
  }
  return std::move(builder).finish();
}

}  // namespace

Plan TreePlans::make(const Call& call, const std::string& algorithm) const {
  CCOM_ASSERT(trees_.size() == 1 || !is_per_rank(call.collective));
  for (const Tree& tree : trees_) {
    CCOM_ASSERT(tree.parent.size() == static_cast<size_t>(call.nranks) && tree.chunks >= 1);
    CCOM_ASSERT(!is_rooted(call.collective) || tree.root == call.root);
  }
  if (!is_per_rank(call.collective)) return vector_plan(call, *this, algorithm);
  const bool by_position = trees_[0].by_position && is_rooted(call.collective);
  return by_position ? UnitTreePlans(trees_[0]).make(call, algorithm) : unit_plan(call, *this, algorithm);
}

Plan tree_plan(const Call& call, const std::vector<Tree>& trees, const std::string& algorithm) {
  return TreePlans(trees).make(call, algorithm);
}

Plan tree_plan(const Call& call, const Tree& tree, const std::string& algorithm) {
  return tree_plan(call, std::vector{tree}, algorithm);
}

}  // namespace ccom
