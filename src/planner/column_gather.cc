// SPDX-License-Identifier: Apache-2.0
//
// The tree of gathers and scatters, with its branches on the root's host.
#include <algorithm>
#include <utility>

#include "planner/column_trees.h"

namespace ccom {
namespace {

// The parent of each device on its way to `root`, whose links are as busy as each other: one device after the other
// hangs where the busiest link of its way then has least to carry for its speed, of those where the way is shortest.
class EvenBranches {
 public:
  EvenBranches(const MachineView& view, int root)
      : view_(view),
        root_(root),
        parent_(static_cast<size_t>(view.devices), -1),
        below_(parent_.size()),
        speed_(parent_.size()),
        hops_(parent_.size()) {}

  // None: not all devices are joined.
  std::vector<int> make() {
    if (view_.all_linked) {
      std::ranges::fill(parent_, root_);
      parent_[at(root_)] = -1;
      return parent_;
    }
    for (int hung = 1; hung < view_.devices; ++hung) {
      const Link* const best = next();
      if (best == nullptr) return {};
      hang(*best);
    }
    return parent_;
  }

 private:
  static size_t at(int device) { return static_cast<size_t>(device); }
  bool hangs(int device) const { return device == root_ || parent_[at(device)] >= 0; }

  const Link* next() const {
    const Link* best = nullptr;
    std::pair<double, int> least;
    for (const Link& link : view_.fabric->links) {
      if (std::max(link.from, link.to) >= view_.devices || hangs(link.from) || !hangs(link.to)) continue;
      double busiest = 1 / link.speed.bytes_per_second;
      for (int above = link.to; above != root_; above = parent_[at(above)]) {
        busiest = std::max(busiest, (below_[at(above)] + 1) / speed_[at(above)]);
      }
      const std::pair load(busiest, hops_[at(link.to)]);
      if (best != nullptr && load >= least) continue;
      best = &link;
      least = load;
    }
    return best;
  }

  void hang(const Link& link) {
    parent_[at(link.from)] = link.to;
    speed_[at(link.from)] = link.speed.bytes_per_second;
    hops_[at(link.from)] = hops_[at(link.to)] + 1;
    for (int device = link.from; device != root_; device = parent_[at(device)]) ++below_[at(device)];
  }

  const MachineView& view_;
  int root_;
  std::vector<int> parent_;
  std::vector<double> below_, speed_;  // of the link to the parent: the devices whose parts it carries
  std::vector<int> hops_;              // to the root
};

}  // namespace

std::vector<Tree> column_gather_tree(const MachineView& view, Rank root) {
  if (!view.follows_fabric || view.nranks < 3) return {};
  const Spot top = view.spot(root);
  const std::vector<int> devices = EvenBranches(view, top.device).make();
  if (devices.empty()) return {};
  Tree tree{root, std::vector<Rank>(static_cast<size_t>(view.nranks), -1), 1};
  for (int host = 0; host < view.hosts; ++host) {
    for (int device = 0; device < view.devices; ++device) {
      const Rank head = view.rank(top.host, device, top.core);
      for (int core = 0; core < view.cores; ++core) {
        tree.parent[static_cast<size_t>(view.rank(host, device, core))] = head;
      }
      const int above = devices[static_cast<size_t>(device)];
      tree.parent[static_cast<size_t>(head)] = above < 0 ? -1 : view.rank(top.host, above, top.core);
    }
  }
  tree.by_position = true;
  return {tree};
}

}  // namespace ccom
