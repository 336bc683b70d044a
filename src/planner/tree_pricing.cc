// SPDX-License-Identifier: Apache-2.0
//
// Prices of trees: chunks follow one another along edges, and each message waits for those of its siblings on the same
// wires.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "algorithms/collectives.h"
#include "algorithms/shape.h"
#include "base/collective.h"
#include "planner/message_pricer.h"

namespace ccom {
namespace {

// Of the ranks, how many hang at each one.
std::vector<double> subtree_shares(const Tree& tree) {
  const std::vector<uint32_t> sizes = subtree_sizes(tree);
  std::vector<double> shares(sizes.begin(), sizes.end());
  for (double& share : shares) share /= static_cast<double>(sizes.size());
  return shares;
}

// The ranks by parent, of each parent's children those with most below first, as plans send to them.
std::vector<size_t> in_sending_order(const Tree& tree) {
  std::vector<size_t> ranks(tree.parent.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const std::vector<uint32_t> below = subtree_sizes(tree);
  std::ranges::stable_sort(ranks, [&](size_t a, size_t b) {
    return tree.parent[a] != tree.parent[b] ? tree.parent[a] < tree.parent[b] : below[a] > below[b];
  });
  return ranks;
}

// What each rank gets from its parent, and what it sends up, as a share of the tree's data.
std::vector<double> shares_down(const Tree& tree, Collective collective) {
  const bool is_by_subtree = is_per_rank(collective) && collective != Collective::AllGather;
  return is_by_subtree ? subtree_shares(tree) : std::vector<double>(tree.parent.size(), 1);
}

std::vector<double> shares_up(const Tree& tree, Collective collective) {
  if (!tree.gathers && (!is_per_rank(collective) || collective == Collective::ReduceScatter))
    return std::vector<double>(tree.parent.size(), 1);
  std::vector<double> shares = subtree_shares(tree);
  const double each = tree.gathers ? static_cast<double>(tree.parent.size()) : 1;
  for (double& share : shares) share *= each;
  return shares;
}

// How many parts are combined at one place.
double parts_of_sum(const Tree& tree, double widest) {
  return tree.gathers ? static_cast<double>(tree.parent.size()) : widest + 1;
}

// In how many pieces each rank passes on what a chunk has for it and those below it, as they come.
std::vector<double> pieces_of(const Tree& tree) {
  if (!tree.by_position) {
    const std::vector<uint32_t> sizes = subtree_sizes(tree);
    return {sizes.begin(), sizes.end()};
  }
  const std::vector<int> messages = UnitTreePlans::messages(tree);
  return {messages.begin(), messages.end()};
}

// By position, the part of a piece's time that ranks above wait for it: none if a rank has only its own unit, which it
// sends meanwhile; nearly all if its own are many, mixed with those of others. Fitted to simulations of 1 to 640 hosts.
std::vector<double> waits_for_pieces(const Tree& tree) {
  const std::vector<uint32_t> sizes = subtree_sizes(tree);
  std::vector<double> waits(sizes.size(), 1);  // the rank and those who have nobody below them, first
  for (size_t r = 0; r < sizes.size(); ++r) {
    if (sizes[r] == 1 && tree.parent[r] >= 0) ++waits[static_cast<size_t>(tree.parent[r])];
  }
  for (double& own : waits) own = tree.by_position ? std::pow(1 - 1 / own, 3) : 0;
  return waits;
}

// When a chunk has come to a rank, or from it to the root: what of that are latencies and posts, and all of it.
struct Way {
  double waits_ns = 0, total_ns = 0;
};

// What trees keep busy in one direction.
struct Load {
  explicit Load(size_t wires) : byte_ns(wires), post_ns(wires) {}

  std::vector<double> byte_ns, post_ns;  // by wire or core: for each byte of the whole, and for each chunk
  double far_ns = 0;                     // for a byte, at the far end of an edge
  Way longest;                           // of a tree's first chunk
};

// Of one tree in one direction.
class TreeWays {
 public:
  // `carried`: the share of the data that each rank's message to or from its parent has.
  TreeWays(const Mediums& mediums, const Tree& tree, const Medium& medium, bool down, std::span<const double> carried)
      : mediums_(mediums), tree_(tree), medium_(medium), down_(down), carried_(carried) {}

  // `pieces`: in how many a rank passes a chunk on, as they come. None: whole.
  void add_to(Load& load, double chunk, std::span<const double> pieces) const {
    const std::vector<size_t> in_order = in_sending_order(tree_);
    std::vector<Way> edges(tree_.parent.size());
    std::vector<double> rest_ns(tree_.parent.size());  // what an edge takes for all that it carries but the first
    // What the parent's core does for each child.
    const double posts_ns = down_ ? medium_.post_ns : 0;
    const double core_ns = posts_ns + (down_ && mediums_.view().fabric != nullptr ? 0 : medium_.message_ns);
    std::map<uint32_t, double> siblings_ns;  // that the messages of children before it take on a wire
    double core_before_ns = 0;               // and on their parent's core
    Rank parent = -1;
    // Where cores copy both ends handle a message, and a parent takes what its children send in the order of the plan,
    // when that of the deepest has come.
    const bool copies = medium_.receive_ns > 0;
    for (size_t i = 0; i < in_order.size(); ++i) {
      const size_t r = in_order[copies && !down_ ? in_order.size() - 1 - i : i];
      if (tree_.parent[r] < 0) continue;
      if (std::exchange(parent, tree_.parent[r]) != tree_.parent[r]) {
        siblings_ns.clear();
        core_before_ns = 0;
      }
      double queue_ns = std::exchange(core_before_ns, core_before_ns + core_ns);
      double moved_ns = 0, latency_ns = medium_.post_ns + (copies ? 2 : 1) * medium_.message_ns;
      mediums_.for_busy(parent, static_cast<Rank>(r), down_, medium_, [&](uint32_t which, const Wire& wire) {
        const double each_ns = carried_[r] * 1e9 / wire.speed.bytes_per_second;
        latency_ns += wire.speed.latency_ns;
        moved_ns = std::max(moved_ns, chunk * each_ns);
        double& before_ns = siblings_ns[which];
        queue_ns = std::max(queue_ns, before_ns);
        before_ns += std::max(wire.post_ns, chunk * each_ns);
        load.byte_ns[which] += each_ns;
        load.post_ns[which] += wire.post_ns;
      });
      const double far_byte_ns = carried_[r] * (down_ ? medium_.receive_ns : medium_.send_ns);
      load.far_ns = std::max(load.far_ns, far_byte_ns);
      const double far_ns = chunk * far_byte_ns;
      const double moves_ns = queue_ns + moved_ns + far_ns;
      // Pieces are under way on all edges at once.
      const double first_ns = pieces.empty() ? moves_ns : (moved_ns + far_ns) / pieces[r];
      edges[r] = {latency_ns, latency_ns + first_ns};
      rest_ns[r] = moves_ns - first_ns;
    }
    if (tree_.by_position && !pieces.empty()) wait_for_wires(load, chunk, edges, rest_ns);
    const std::vector<double> waits = waits_for_pieces(tree_);
    for (size_t r = 0; r < edges.size(); ++r) {
      Way way;
      double moved_ns = 0, most_ns = 0;
      for (auto at = static_cast<Rank>(r); at >= 0; at = tree_.parent[static_cast<size_t>(at)]) {
        const Way& edge = edges[static_cast<size_t>(at)];
        const double rest = rest_ns[static_cast<size_t>(at)], first = edge.total_ns - edge.waits_ns;
        way.waits_ns += edge.waits_ns;
        // By position an edge begins with what its rank has, and is done with all but its last piece, or waits for it.
        moved_ns = tree_.by_position ? std::max(moved_ns, rest) + first : moved_ns + first;
        most_ns = tree_.by_position ? most_ns + first * waits[static_cast<size_t>(at)] : std::max(most_ns, rest);
      }
      way.total_ns = way.waits_ns + moved_ns + most_ns;
      if (way.total_ns > load.longest.total_ns) load.longest = way;
    }
  }

 private:
  // Others' messages on the wires of an edge are mixed with its own.
  void wait_for_wires(const Load& load, double chunk, std::span<const Way> edges, std::span<double> rest_ns) const {
    for (size_t r = 0; r < edges.size(); ++r) {
      if (tree_.parent[r] < 0) continue;
      const double first_ns = edges[r].total_ns - edges[r].waits_ns;
      mediums_.for_busy(tree_.parent[r], static_cast<Rank>(r), down_, medium_, [&](uint32_t which, const Wire&) {
        rest_ns[r] = std::max({rest_ns[r], chunk * load.byte_ns[which] - first_ns, load.post_ns[which] - first_ns});
      });
    }
  }

  const Mediums& mediums_;
  const Tree& tree_;
  const Medium& medium_;
  bool down_;
  std::span<const double> carried_;
};

// Most that a rank sends of each of so many chunks, to its parents or to its children.
double most_posts(const std::vector<Tree>& trees, bool down, double chunks) {
  std::vector<double> posts(trees[0].parent.size());
  for (const Tree& tree : trees) {
    const std::vector<int> messages = tree.by_position ? UnitTreePlans::messages(tree) : std::vector<int>();
    for (size_t r = 0; r < posts.size(); ++r) {
      if (tree.parent[r] < 0) continue;
      posts[down ? static_cast<size_t>(tree.parent[r]) : r] += tree.by_position ? messages[r] / chunks : 1;
    }
  }
  return std::ranges::max(posts);
}

double depth_of(const Tree& tree) {
  double depth = 0;
  for (size_t r = 0; r < tree.parent.size(); ++r) {
    double levels = -1;
    for (auto at = static_cast<Rank>(r); at >= 0; at = tree.parent[static_cast<size_t>(at)]) ++levels;
    depth = std::max(depth, levels);
  }
  return depth;
}

}  // namespace

// Chunks follow one another down (or up) the trees, as fast as the wire or core that most edges share, or the rank with
// most children, lets them.
Price price_trees(const Mediums& mediums, Collective collective, double n, const std::vector<Tree>& trees) {
  const bool up = !only_root_reads(collective), down = !only_root_writes(collective);
  const double ways = up && down ? 2 : 1;
  const size_t nranks = trees[0].parent.size();
  const bool by_unit = is_per_rank(collective);
  // A tree hands units on one by one where everybody gets or gives all of them; by position all edges are busy at once.
  const bool by_position = trees[0].by_position && trees[0].chunks > 1;
  const double chunks = by_unit && ways == 2 ? static_cast<double>(nranks) : by_position ? 1 : trees[0].chunks;
  const double chunk = n / chunks;
  std::vector<double> children(nranks);
  for (const Tree& tree : trees) {
    for (const Rank parent : tree.parent) children[static_cast<size_t>(std::max(parent, 0))] += parent < 0 ? 0 : 1;
  }
  const double widest = std::ranges::max(children);
  // Between ranks of plain hosts most messages are of one unit.
  const double of_unit = mediums.view().fabric == nullptr
                             ? n / static_cast<double>(nranks)
                             : n * (1 - 1 / static_cast<double>(nranks)) / std::max(widest, 1.0);
  const Medium medium = mediums.of_edges(by_unit ? of_unit : chunk);

  std::vector<double> pieces;
  if (by_unit && ways == 1 && mediums.view().fabric != nullptr) pieces = pieces_of(trees[0]);
  Load down_load(mediums.busy_count()), up_load(mediums.busy_count());
  double depth = 0;
  const double part = 1 / static_cast<double>(trees.size());
  for (const Tree& tree : trees) {
    depth = std::max(depth, depth_of(tree));
    const auto add = [&](Load& load, bool is_down, std::vector<double> carried) {
      for (double& share : carried) share *= part;
      TreeWays(mediums, tree, medium, is_down, carried).add_to(load, chunk, pieces);
    };
    if (down) add(down_load, true, shares_down(tree, collective));
    if (up) add(up_load, false, shares_up(tree, collective));
  }
  const double far_ns = std::max(down_load.far_ns, up_load.far_ns);
  const double post_ns = std::max(std::ranges::max(down_load.post_ns), std::ranges::max(up_load.post_ns));
  const double busiest_ns = std::ranges::max(up_load.byte_ns) + std::ranges::max(down_load.byte_ns);
  const double waited_ns = down_load.longest.waits_ns + up_load.longest.waits_ns;
  std::vector<double>& both_ns = up_load.byte_ns;
  std::ranges::transform(both_ns, down_load.byte_ns, both_ns.begin(), std::plus<>());
  // What comes up is posted by many ranks.
  const double posts = (up && collective != Collective::AllGather ? most_posts(trees, false, chunks) : 0) +
                       (down && collective != Collective::ReduceScatter ? most_posts(trees, true, chunks) : 0);
  // No wire carries all of a chunk sooner than its bytes and its messages take. Of several trees down the last one's
  // has its way after those of others have been on the busiest wire.
  double way_ns = down_load.longest.total_ns + up_load.longest.total_ns - waited_ns;
  if (collective == Collective::Broadcast && trees.size() > 1)
    way_ns += chunk * busiest_ns * (1 - 1 / static_cast<double>(trees.size()));
  const double first_ns =
      std::max({way_ns, chunk * busiest_ns, post_ns, by_position ? posts * (medium.post_ns + medium.message_ns) : 0});
  const double interval_ns = std::max({chunk * (std::ranges::max(both_ns) + far_ns), post_ns, posts * medium.post_ns});
  const double waits_ns = waited_ns + ways * (chunks - 1) * (widest * medium.message_ns + medium.chunk_wait_ns);
  const double parts = reduces(collective) ? parts_of_sum(trees[0], widest) : 0;
  const double sums_ns = (depth + chunks - 1) * parts * chunk * mediums.reduce_ns();
  Price price;
  const double turns = by_position ? trees[0].chunks : chunks;
  price.cost = {ways * (depth + turns - 1), ways * widest * turns, by_unit && ways == 1 ? n : ways * widest * part * n,
                0};
  price.add(medium.kind, waits_ns, first_ns + (chunks - 1) * interval_ns + sums_ns);
  if (reduces(collective)) price.roundings = trees[0].gathers ? 1 : static_cast<int>(depth);
  return price;
}

// Each edge takes a chunk as long as if it waited for all others that go through its busiest wire.
void order_sends(const Mediums& mediums, double n, std::vector<Tree>& trees) {
  const double part = 1 / static_cast<double>(trees.size());
  const double chunk = n / trees[0].chunks;
  const Medium medium = mediums.of_edges(chunk);
  const std::vector<double> shares(trees[0].parent.size(), part);
  Load load(mediums.busy_count());
  for (const Tree& tree : trees) TreeWays(mediums, tree, medium, false, shares).add_to(load, chunk, {});
  const double interval_ns =
      std::max({chunk * (std::ranges::max(load.byte_ns) + load.far_ns), std::ranges::max(load.post_ns),
                most_posts(trees, false, trees[0].chunks) * medium.post_ns});
  std::vector<std::vector<uint32_t>> wires(shares.size());  // that leave each rank
  for (Tree& tree : trees) {
    std::vector<double> edges_ns(shares.size());
    tree.egress.assign(shares.size(), 0);
    for (size_t r = 0; r < shares.size(); ++r) {
      if (tree.parent[r] < 0) continue;
      double busy_ns = 0;
      std::optional<uint32_t> first;
      edges_ns[r] = medium.post_ns + medium.message_ns;
      mediums.for_busy(tree.parent[r], static_cast<Rank>(r), false, medium, [&](uint32_t which, const Wire& wire) {
        if (!first) first = which;
        edges_ns[r] += wire.speed.latency_ns;
        busy_ns = std::max(busy_ns, chunk * load.byte_ns[which]);
      });
      edges_ns[r] += busy_ns;
      const size_t egress = std::ranges::find(wires[r], *first) - wires[r].begin();
      if (egress == wires[r].size()) wires[r].push_back(*first);
      tree.egress[r] = static_cast<uint8_t>(egress + 1);
    }
    tree.lead.clear();
    for (size_t r = 0; r < shares.size(); ++r) {
      double way_ns = 0;
      for (auto at = static_cast<Rank>(r); at >= 0; at = tree.parent[static_cast<size_t>(at)])
        way_ns += edges_ns[static_cast<size_t>(at)];
      tree.lead.push_back(static_cast<uint32_t>(way_ns / interval_ns * Tree::kLeadUnits));
    }
  }
}

}  // namespace ccom
