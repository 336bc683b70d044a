// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <span>
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

// Of a rank's message to or from its parent.
double most_carried(const Tree& tree, std::span<const double> carried) {
  double most = 0;
  for (size_t r = 0; r < carried.size(); ++r) most = std::max(most, tree.parent[r] < 0 ? 0 : carried[r]);
  return most;
}

// When a chunk has come to a rank, or from it to the root: what of that are latencies and posts, and all of it.
struct Way {
  double waits_ns = 0, total_ns = 0;
};

// Of one tree in one direction: what a chunk keeps busy, and its longest way.
class TreeWays {
 public:
  // `carried`: the share of the data that each rank's message to or from its parent has.
  TreeWays(const Mediums& mediums, const Tree& tree, const Medium& medium, bool down, std::span<const double> carried)
      : mediums_(mediums), tree_(tree), medium_(medium), down_(down), carried_(carried) {}

  // Adds to what each wire or core is busy, for each byte of a chunk and for each chunk. `in_order`:
  // in_sending_order(). `by_unit`: a rank passes a chunk on unit by unit as they come.
  Way longest(double chunk, bool by_unit, std::span<const size_t> in_order, std::vector<double>& byte_ns,
              std::vector<double>& post_ns) const {
    const auto nranks = static_cast<double>(tree_.parent.size());
    std::vector<Way> edges(tree_.parent.size());
    std::vector<double> whole_ns(tree_.parent.size());  // what an edge takes for all that it carries
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
        before_ns += wire.post_ns + chunk * each_ns;
        byte_ns[which] += each_ns;
        post_ns[which] += wire.post_ns;
      });
      const double far_ns = chunk * carried_[r] * (down_ ? medium_.receive_ns : medium_.send_ns);
      const double moves_ns = queue_ns + moved_ns + far_ns;
      // Units that go on one by one are under way on all edges at once.
      const double first_ns = by_unit ? (moved_ns + far_ns) / std::max(carried_[r] * nranks, 1.0) : moves_ns;
      edges[r] = {latency_ns, latency_ns + first_ns};
      whole_ns[r] = moves_ns - first_ns;
    }
    Way longest;
    for (size_t r = 0; r < edges.size(); ++r) {
      Way way;
      double most_ns = 0;
      for (auto at = static_cast<Rank>(r); at >= 0; at = tree_.parent[static_cast<size_t>(at)]) {
        way.waits_ns += edges[static_cast<size_t>(at)].waits_ns;
        way.total_ns += edges[static_cast<size_t>(at)].total_ns;
        most_ns = std::max(most_ns, whole_ns[static_cast<size_t>(at)]);
      }
      way.total_ns += most_ns;
      if (way.total_ns > longest.total_ns) longest = way;
    }
    return longest;
  }

 private:
  const Mediums& mediums_;
  const Tree& tree_;
  const Medium& medium_;
  bool down_;
  std::span<const double> carried_;
};

// Messages on each rank's edge, of all chunks: by position an inner rank's units go on in turn with those of others
// (unit_tree.cc).
std::vector<double> messages_of_edges(const Tree& tree) {
  const size_t nranks = tree.parent.size();
  if (!tree.by_position || tree.chunks == 1) return std::vector<double>(nranks, tree.chunks);
  std::vector<bool> is_inner(nranks);
  for (const Rank parent : tree.parent) {
    if (parent >= 0) is_inner[static_cast<size_t>(parent)] = true;
  }
  std::vector<int> own(nranks, 1);  // itself and those below it that have nobody below them
  for (size_t r = 0; r < nranks; ++r) {
    if (tree.parent[r] >= 0 && !is_inner[r]) ++own[static_cast<size_t>(tree.parent[r])];
  }
  std::vector<double> messages(nranks, 1);
  for (size_t r = 0; r < nranks; ++r) {
    if (!is_inner[r]) continue;
    messages[r] -= 1;
    for (auto at = static_cast<Rank>(r); at >= 0; at = tree.parent[static_cast<size_t>(at)]) {
      messages[static_cast<size_t>(at)] += std::min(own[r], tree.chunks);
    }
  }
  return messages;
}

// Most that a rank sends of each chunk, to its parents or to its children.
double most_posts(const std::vector<Tree>& trees, bool down) {
  std::vector<double> posts(trees[0].parent.size());
  for (const Tree& tree : trees) {
    const std::vector<double> messages = messages_of_edges(tree);
    for (size_t r = 0; r < posts.size(); ++r) {
      if (tree.parent[r] >= 0) posts[down ? static_cast<size_t>(tree.parent[r]) : r] += messages[r] / tree.chunks;
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

// How much longer chunks of several trees take that wait for each other on their way up at the ports of a switch:
// leaves of one tree have all of their chunks at once, before those of others that pass. Fitted to simulations of 1 to
// 8 hosts of 5 to 16 devices: 1.4 to 1.5 from 16 MiB on.
double meeting(const Mediums& mediums, Collective collective, const std::vector<Tree>& trees) {
  constexpr double kMeeting = 1.45;
  const Fabric* const fabric = mediums.view().fabric;
  const bool shares_ports = fabric != nullptr && fabric->shape == Fabric::Shape::Switch && trees.size() > 1;
  return shares_ports && collective == Collective::Reduce ? kMeeting : 1;
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
  // Between ranks of plain hosts most messages are of one unit.
  const double of_unit = mediums.view().fabric == nullptr
                             ? n / static_cast<double>(nranks)
                             : n * (1 - 1 / static_cast<double>(nranks)) / std::max(widest, 1.0);
  const Medium medium = mediums.of_edges(by_unit ? of_unit : chunk);

  const bool one_by_one = by_unit && ways == 1 && !trees[0].by_position && mediums.view().fabric != nullptr;
  // By what is busy: for each byte of the whole, and for each chunk.
  std::vector<double> down_ns(mediums.busy_count()), up_ns(down_ns), post_ns(down_ns), up_post_ns(down_ns);
  double depth = 0, far_ns = 0;  // of the longest way; for a byte, at the far end of an edge
  Way longest_down, longest_up;
  const auto lengthen = [](Way& longest, const Way& way) {
    if (way.total_ns > longest.total_ns) longest = way;
  };
  const double part = 1 / static_cast<double>(trees.size());
  for (const Tree& tree : trees) {
    const std::vector<size_t> in_order = in_sending_order(tree);
    depth = std::max(depth, depth_of(tree));
    if (down) {
      std::vector<double> carried =
          by_unit && collective != Collective::AllGather ? subtree_shares(tree) : std::vector<double>(nranks, 1);
      for (double& share : carried) share *= part;
      far_ns = std::max(far_ns, most_carried(tree, carried) * medium.receive_ns);
      lengthen(longest_down,
               TreeWays(mediums, tree, medium, true, carried).longest(chunk, one_by_one, in_order, down_ns, post_ns));
    }
    if (up) {
      std::vector<double> carried = shares_up(tree, collective);
      for (double& share : carried) share *= part;
      far_ns = std::max(far_ns, most_carried(tree, carried) * medium.send_ns);
      lengthen(longest_up,
               TreeWays(mediums, tree, medium, false, carried).longest(chunk, one_by_one, in_order, up_ns, up_post_ns));
    }
  }
  const double busiest_ns = std::ranges::max(up_ns) + std::ranges::max(down_ns);
  const double deepest_ns = longest_down.waits_ns + longest_up.waits_ns;
  std::ranges::transform(up_ns, down_ns, up_ns.begin(), std::plus<>());
  std::ranges::transform(post_ns, up_post_ns, post_ns.begin(), std::ranges::max);
  // No wire carries all of a chunk sooner than its bytes and its messages take.
  const double first_ns = std::max(
      {longest_down.total_ns + longest_up.total_ns - deepest_ns, chunk * busiest_ns, std::ranges::max(post_ns)});
  // What comes up is posted by many ranks.
  const double posts = (up && collective != Collective::AllGather ? most_posts(trees, false) : 0) +
                       (down && collective != Collective::ReduceScatter ? most_posts(trees, true) : 0);
  const double interval_ns = std::max({chunk * (std::ranges::max(up_ns) * meeting(mediums, collective, trees) + far_ns),
                                       std::ranges::max(post_ns), posts * medium.post_ns});
  const double waits_ns = deepest_ns + ways * (chunks - 1) * (widest * medium.message_ns + medium.chunk_wait_ns);
  const double parts = reduces(collective) ? parts_of_sum(trees[0], widest) : 0;
  const double sums_ns = (depth + chunks - 1) * parts * chunk * mediums.reduce_ns();
  Price price;
  price.cost = {ways * (depth + chunks - 1), ways * widest * chunks,
                by_unit && ways == 1 ? n : ways * widest * part * n, 0};
  price.add(medium.kind, waits_ns, first_ns + (chunks - 1) * interval_ns + sums_ns);
  if (reduces(collective)) price.roundings = trees[0].gathers ? 1 : static_cast<int>(depth);
  return price;
}

}  // namespace ccom
