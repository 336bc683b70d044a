// SPDX-License-Identifier: Apache-2.0
#include "planner/even_trees.h"

#include <algorithm>
#include <optional>

namespace ccom {
namespace {

class EvenTrees {
 public:
  EvenTrees(const MachineView& view, Rank root) : view_(view), root_rank_(root), root_(view.spot(root)) {
    for (const Link& link : view.fabric->links) {
      if (std::max(link.from, link.to) >= view.devices) continue;
      links_.push_back(link);
      fastest_ = std::max(fastest_, link.speed.bytes_per_second);
    }
  }

  std::vector<Tree> make(const std::vector<std::vector<Rank>>& hosts) {
    std::vector<Tree> trees;
    std::vector<double> at_root(links_.size()), elsewhere(links_.size());
    // On one host columns are as good as each other.
    const int columns = view_.hosts > 1 ? view_.devices : std::min(view_.devices, kTreesOfHost);
    for (int column = 0; column < columns; ++column) {
      for (const std::vector<Rank>& above : hosts) {
        const std::vector<int> root_host = grow(root_.device, true, at_root);
        const std::vector<int> others = view_.hosts > 1 ? grow(column, false, elsewhere) : std::vector<int>();
        if (root_host.empty()) return {};
        Tree& tree = trees.emplace_back(Tree{root_rank_, std::vector<Rank>(static_cast<size_t>(view_.nranks), -1), 1});
        for (int host = 0; host < view_.hosts; ++host) {
          const int from = above[static_cast<size_t>(host)];
          hang_host(tree, column, host, from, from < 0 ? root_host : others);
        }
        if (view_.cores > 1) hang_roots_mates(tree, column, static_cast<int>(trees.size()), at_root);
      }
    }
    return trees;
  }

 private:
  // A step down is worth as much as so many shares on a fast link.
  static constexpr double kStep = 0.5;
  // So that few enough go over a link for transports, which open 16 channels between two ranks.
  static constexpr int kTreesOfHost = 32;

  double cost(size_t link, const std::vector<double>& shares) const {
    return (shares[link] + 1) * fastest_ / links_[link].speed.bytes_per_second;
  }

  // The parent of each device; the root sends once. None: not all are joined.
  std::vector<int> grow(int top, bool sends_once, std::vector<double>& shares) const {
    std::vector<int> parent(static_cast<size_t>(view_.devices), -1), depth(parent.size(), -1);
    depth[static_cast<size_t>(top)] = 0;
    for (int hung = 1; hung < view_.devices; ++hung) {
      std::optional<size_t> best;
      double least = 0;
      for (size_t l = 0; l < links_.size(); ++l) {
        const int above = depth[static_cast<size_t>(links_[l].from)];
        if (above < 0 || depth[static_cast<size_t>(links_[l].to)] >= 0) continue;
        if (sends_once && links_[l].from == top && hung > 1) continue;
        const double here = cost(l, shares) + kStep * above;
        if (best && here >= least) continue;
        best = l;
        least = here;
      }
      if (!best) return {};
      const Link& link = links_[*best];
      ++shares[*best];
      parent[static_cast<size_t>(link.to)] = link.from;
      depth[static_cast<size_t>(link.to)] = depth[static_cast<size_t>(link.from)] + 1;
    }
    return parent;
  }

  // A neighbour of a device, by the least used link.
  int before(int device, std::vector<double>& shares) const {
    std::optional<size_t> best;
    for (size_t l = 0; l < links_.size(); ++l) {
      if (links_[l].to == device && (!best || cost(l, shares) < cost(*best, shares))) best = l;
    }
    ++shares[*best];
    return links_[*best].from;
  }

  void hang_host(Tree& tree, int column, int host, int above, const std::vector<int>& parents) const {
    for (int device = 0; device < view_.devices; ++device) {
      const Rank self = rank(column, host, device);
      const int from = parents[static_cast<size_t>(device)];
      if (from >= 0) {
        tree.parent[static_cast<size_t>(self)] = rank(column, host, from);
      } else if (above >= 0) {
        tree.parent[static_cast<size_t>(self)] = rank(column, above, column);
      }
      // The core that passes on is another one in each tree: all ports carry as many shares.
      for (int core = 0; self != root_rank_ && core < view_.cores; ++core) {
        const Rank mate = view_.rank(host, device, core);
        if (mate != self) tree.parent[static_cast<size_t>(mate)] = self;
      }
    }
  }

  // The root's port is too slow for all that its mates need, and nothing else comes in over the root's links.
  void hang_roots_mates(Tree& tree, int column, int number, std::vector<double>& at_root) const {
    const bool from_root = number % view_.cores == 0;
    Rank above = from_root ? root_rank_ : rank(column, root_.host, before(root_.device, at_root));
    for (int i = 1; i < view_.cores; ++i) {
      const int turn = 1 + (number + i) % (view_.cores - 1);
      const Rank mate = view_.rank(root_.host, root_.device, (root_.core + turn) % view_.cores);
      tree.parent[static_cast<size_t>(mate)] = above;
      if (!from_root && i == 1) above = mate;
    }
  }

  // The one of a device that passes on.
  Rank rank(int column, int host, int device) const {
    const bool is_at_root = host == root_.host && device == root_.device;
    return is_at_root ? root_rank_ : view_.rank(host, device, (root_.core + column) % view_.cores);
  }

  const MachineView& view_;
  Rank root_rank_;
  Spot root_;
  std::vector<Link> links_;
  double fastest_ = 0;
};

}  // namespace

std::vector<Tree> even_trees(const MachineView& view, Rank root, const std::vector<std::vector<Rank>>& hosts) {
  return EvenTrees(view, root).make(hosts);
}

}  // namespace ccom
