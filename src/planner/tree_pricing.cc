// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "base/collective.h"
#include "planner/message_pricer.h"

namespace ccom {
namespace {

// Of the ranks, how many hang at each one.
std::vector<double> subtree_shares(const Tree& tree) {
  std::vector<double> shares(tree.parent.size());
  for (size_t r = 0; r < shares.size(); ++r) {
    for (Rank at = static_cast<Rank>(r); at >= 0; at = tree.parent[static_cast<size_t>(at)]) {
      shares[static_cast<size_t>(at)] += 1 / static_cast<double>(shares.size());
    }
  }
  return shares;
}

// The ranks by parent, of each parent's children those with most below first, as plans send to them.
std::vector<size_t> in_sending_order(const Tree& tree) {
  std::vector<size_t> ranks(tree.parent.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const std::vector<double> below = subtree_shares(tree);
  std::ranges::stable_sort(ranks, [&](size_t a, size_t b) {
    return tree.parent[a] != tree.parent[b] ? tree.parent[a] < tree.parent[b] : below[a] > below[b];
  });
  return ranks;
}

// What each rank sends up, as a share of the data.
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

}  // namespace

// Chunks follow one another down (or up) the trees, as fast as the wire or core that most edges share, or the rank with
// most children, lets them.
Price price_trees(const Mediums& mediums, Collective collective, double n, const std::vector<Tree>& trees) {
  const bool up = !only_root_reads(collective), down = !only_root_writes(collective);
  const double ways = up && down ? 2 : 1;
  const size_t nranks = trees[0].parent.size();
  const bool by_unit = is_per_rank(collective);
  // A tree hands units on one by one where everybody gets or gives all of them.
  const double chunks = by_unit && ways == 2 ? static_cast<double>(nranks) : trees[0].chunks;
  const double chunk = n / chunks;
  std::vector<double> children(nranks);
  for (const Tree& tree : trees) {
    for (const Rank parent : tree.parent) children[static_cast<size_t>(std::max(parent, 0))] += parent < 0 ? 0 : 1;
  }
  const double widest = std::ranges::max(children);
  const Medium medium =
      mediums.of_edges(by_unit ? n * (1 - 1 / static_cast<double>(nranks)) / std::max(widest, 1.0) : chunk);

  // By what is busy: for each byte of the whole, and for each chunk.
  std::vector<double> down_ns(mediums.busy_count()), up_ns(down_ns), post_ns(down_ns);
  double depth = 0, deepest_ns = 0, far_ns = 0;  // of the longest way; for a byte, at the far end of an edge
  const double part = 1 / static_cast<double>(trees.size());
  for (const Tree& tree : trees) {
    const std::vector<double> below = by_unit ? subtree_shares(tree) : std::vector<double>(nranks, 1);
    const std::vector<double> sent_up = shares_up(tree, collective);
    std::vector<double> edge_ns(nranks);
    std::map<uint32_t, double> siblings_ns;  // that the messages to children before it take on a wire
    Rank parent = -1;
    for (const size_t r : in_sending_order(tree)) {
      if (tree.parent[r] < 0) continue;
      if (std::exchange(parent, tree.parent[r]) != tree.parent[r]) siblings_ns.clear();
      edge_ns[r] = medium.post_ns;
      double queue_ns = 0;
      const double carried_down = down ? part * (collective == Collective::AllGather ? 1 : below[r]) : 0;
      const double carried_up = up ? part * sent_up[r] : 0;
      far_ns = std::max(far_ns, carried_down * medium.receive_ns + carried_up * medium.send_ns);
      mediums.for_busy(tree.parent[r], static_cast<Rank>(r), true, medium, [&](uint32_t which, const Wire& wire) {
        edge_ns[r] += wire.speed.latency_ns;
        queue_ns = std::max(queue_ns, siblings_ns[which]);
        siblings_ns[which] += wire.post_ns;
        post_ns[which] += wire.post_ns;
        down_ns[which] += carried_down * 1e9 / wire.speed.bytes_per_second;
      });
      edge_ns[r] += queue_ns;
      if (!up) continue;
      mediums.for_busy(tree.parent[r], static_cast<Rank>(r), false, medium, [&](uint32_t which, const Wire& wire) {
        up_ns[which] += carried_up * 1e9 / wire.speed.bytes_per_second;
      });
    }
    for (size_t r = 0; r < nranks; ++r) {
      double way_ns = 0, levels = -1;
      for (auto at = static_cast<Rank>(r); at >= 0; at = tree.parent[static_cast<size_t>(at)], ++levels) {
        way_ns += edge_ns[static_cast<size_t>(at)];
      }
      deepest_ns = std::max(deepest_ns, way_ns);
      depth = std::max(depth, levels);
    }
  }
  // What goes to or comes from one root is halved with each level. It moves everything once, and so do, over all
  // levels, those between it and the leaves.
  const bool halves = by_unit && ways == 1;
  if (halves && depth > 1) far_ns = down ? medium.receive_ns : medium.send_ns;
  const double levels = halves && !medium.levels_meet ? 1 : depth;
  const double first_ns = levels * chunk * (std::ranges::max(up_ns) + std::ranges::max(down_ns) + far_ns);
  std::ranges::transform(up_ns, down_ns, up_ns.begin(), std::plus<>());
  // What a rank sends of each chunk: one message up, one to each child down. What comes up is posted by many ranks.
  const double posts = (up && collective != Collective::AllGather ? 1 : 0) +
                       (down && collective != Collective::ReduceScatter ? widest : 0);
  const double interval_ns =
      std::max({chunk * (std::ranges::max(up_ns) + far_ns), std::ranges::max(post_ns), posts * medium.post_ns});
  const double waits_ns =
      ways * (deepest_ns + chunks * widest * medium.message_ns + (chunks - 1) * medium.chunk_wait_ns) +
      (down ? (widest - 1) * medium.post_ns : 0);
  const double parts = reduces(collective) ? parts_of_sum(trees[0], widest) : 0;
  const double sums_ns = (depth + chunks - 1) * parts * chunk * mediums.reduce_ns();
  Price price;
  price.cost = {ways * (depth + chunks - 1), ways * widest * chunks, halves ? n : ways * widest * part * n, 0};
  price.add(medium.kind, waits_ns, first_ns + (chunks - 1) * interval_ns + sums_ns);
  if (reduces(collective)) price.roundings = trees[0].gathers ? 1 : static_cast<int>(depth);
  return price;
}

}  // namespace ccom
