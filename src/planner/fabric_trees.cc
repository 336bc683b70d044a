// SPDX-License-Identifier: Apache-2.0
#include "planner/fabric_trees.h"

#include <algorithm>
#include <map>

#include "topology/wires.h"

namespace ccom {
namespace {

using LinkSpeedKey = std::pair<double, double>;

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

}  // namespace

// Chunks follow one another down (or up) the trees, as fast as the wire that most edges share, or the rank with most
// children, lets them. Each tree has an equal share of the data.
Price price_trees(const Topology& topology, const FabricView& view, const Question& question,
                  const std::vector<Tree>& trees) {
  const Wires wires(topology);
  const double post_ns = view.fabric->costs.post_ns;
  Price price;
  const bool up = !only_root_reads(question.collective);
  const bool down = !only_root_writes(question.collective);
  std::vector<double> children(trees[0].parent.size());
  std::vector<double> ns_per_byte(wires.count()), post_per_chunk(wires.count());
  std::vector<uint32_t> path;
  double deepest = 0, depth = 0;
  for (const Tree& tree : trees) {
    const std::vector<double> carried =
        is_per_rank(question.collective) ? subtree_shares(tree) : std::vector<double>(tree.parent.size(), 1);
    std::vector<double> edge(tree.parent.size());  // latency from the parent
    const auto share = [&](uint32_t wire) {
      return 1e9 / wires[wire].speed.bytes_per_second / static_cast<double>(trees.size());
    };
    for (Rank r = 0; r < view.nranks(); ++r) {
      const Rank parent = tree.parent[static_cast<size_t>(r)];
      if (parent < 0) continue;
      ++children[static_cast<size_t>(parent)];
      path.clear();
      wires.path(parent, r, path);
      edge[static_cast<size_t>(r)] = post_ns;
      for (const uint32_t wire : path) {
        edge[static_cast<size_t>(r)] += wires[wire].speed.latency_ns;
        post_per_chunk[wire] += wires[wire].post_ns;
        if (down)
          ns_per_byte[wire] +=
              share(wire) * (question.collective == Collective::AllGather ? 1 : carried[static_cast<size_t>(r)]);
      }
      path.clear();
      if (up) wires.path(r, parent, path);
      for (const uint32_t wire : path) {
        ns_per_byte[wire] +=
            share(wire) * (question.collective == Collective::ReduceScatter ? 1 : carried[static_cast<size_t>(r)]);
      }
    }
    for (Rank r = 0; r < view.nranks(); ++r) {
      double way = 0, levels = 0;
      for (Rank at = r; tree.parent[static_cast<size_t>(at)] >= 0; at = tree.parent[static_cast<size_t>(at)]) {
        way += edge[static_cast<size_t>(at)];
        ++levels;
      }
      deepest = std::max(deepest, way);
      depth = std::max(depth, levels);
    }
  }
  const double widest = *std::ranges::max_element(children);
  const double slowest = *std::ranges::max_element(ns_per_byte);
  const double ways = up && down ? 2 : 1;
  const double first_posts = down ? (widest - 1) * post_ns : 0;  // what comes up is posted by many ranks
  // A tree hands units on one by one where everybody gets or gives all of them.
  const bool by_unit = is_per_rank(question.collective) && up && down;
  const double chunks = by_unit ? view.nranks() : trees[0].chunks;
  const double chunk_ns = static_cast<double>(question.bytes) / chunks * slowest;
  // What a rank sends of each chunk: one message up, one to each child down.
  const bool chunks_up = up && question.collective != Collective::AllGather;
  const bool chunks_down = down && question.collective != Collective::ReduceScatter;
  const double wire_post = *std::ranges::max_element(post_per_chunk);
  const double interval = std::max({chunk_ns, wire_post, ((chunks_up ? 1 : 0) + (chunks_down ? widest : 0)) * post_ns});
  price.cost = {ways * (depth + chunks - 1), ways * widest * chunks,
                ways * widest * static_cast<double>(question.bytes) / static_cast<double>(trees.size()), 0};
  price.time_ns = ways * (deepest + depth * chunk_ns) + first_posts + (chunks - 1) * interval;
  if (reduces(question.collective)) price.roundings = static_cast<int>(depth);
  return price;
}

double busiest_ns(const FabricView& view, const Wires& wires, double each) {
  std::vector<uint32_t> path;
  std::map<LinkSpeedKey, double> busy, there;
  for (Rank r = 1; r < view.nranks(); ++r) {
    path.clear();
    wires.path(0, r, path);
    for (const uint32_t wire : path) {
      const LinkSpeed& speed = wires[wire].speed;
      busy[{speed.bytes_per_second, speed.latency_ns}] +=
          std::max(each * 1e9 / speed.bytes_per_second, wires[wire].post_ns);
    }
  }
  for (uint32_t wire = 0; wire < wires.count(); ++wire) {
    ++there[{wires[wire].speed.bytes_per_second, wires[wire].speed.latency_ns}];
  }
  double busiest = 0;
  for (const auto& [speed, ns] : busy) busiest = std::max(busiest, ns * view.nranks() / there[speed]);
  return busiest;
}

Price price_pairwise(const Topology& topology, const FabricView& view, const Question& question) {
  const Wires wires(topology);
  const double p = view.nranks();
  const double each = static_cast<double>(question.bytes) / p;
  double longest = 0;
  for (Rank r = 1; r < view.nranks(); ++r) longest = std::max(longest, wires.latency_ns(0, r));
  Price price;
  price.cost = {1, p - 1, each * (p - 1), 0};
  price.time_ns = longest + std::max(busiest_ns(view, wires, each), (p - 1) * view.fabric->costs.post_ns);
  return price;
}

}  // namespace ccom
