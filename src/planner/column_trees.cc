// SPDX-License-Identifier: Apache-2.0
#include "planner/column_trees.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "algorithms/cycles.h"
#include "algorithms/shape.h"

namespace ccom {
namespace {

// Where a rank is.
struct Spot {
  int host = 0, device = 0, core = 0;
};

Spot spot_of(const MachineView& view, Rank rank) {
  for (int host = 0; host < view.hosts; ++host) {
    for (int device = 0; device < view.devices; ++device) {
      for (int core = 0; core < view.cores; ++core) {
        if (view.rank(host, device, core) == rank) return {host, device, core};
      }
    }
  }
  return {};
}

// The devices of a layer in the order of each way round.
std::vector<std::vector<int>> ways_round(const MachineView& view, const std::vector<int>& dims, int devices) {
  std::vector<std::vector<int>> ways;
  if (!view.all_linked && !dims.empty() && devices > 2) {
    for (const std::vector<uint32_t>& cycle : hamiltonian_cycles(dims)) ways.emplace_back(cycle.begin(), cycle.end());
  } else if (view.all_linked || devices <= 2) {
    std::vector<int>& in_row = ways.emplace_back(static_cast<size_t>(devices));
    std::iota(in_row.begin(), in_row.end(), 0);
  }
  const size_t cycles = ways.size();
  for (size_t i = 0; i < cycles && devices > 2; ++i) {
    std::vector<int> back = ways[i];
    std::ranges::reverse(back);
    ways.push_back(std::move(back));
  }
  return ways;
}

class ColumnTrees {
 public:
  ColumnTrees(const MachineView& view, Rank root) : view_(view), root_rank_(root), root_(spot_of(view, root)) {
    std::vector<int> dims = view.dims;
    if (dims.size() == 3 && view.dim_speeds[0].bytes_per_second < view.dim_speeds[1].bytes_per_second) {
      layers_ = dims[0];
      dims.erase(dims.begin());
    }
    in_layer_ = view.devices / layers_;
    ways_ = ways_round(view, dims, in_layer_);
    if (view.hosts == 1) {
      hosts_.emplace_back(1, -1);
    } else if (view.hosts == 2) {
      hosts_ = {knomial_tree(2, root_.host, 2).parent};
    } else {
      for (const Tree& tree : double_tree(view.hosts, root_.host, 1)) hosts_.push_back(tree.parent);
    }
  }

  std::vector<Tree> make() const {
    std::vector<Tree> trees;
    if (ways_.empty()) return trees;
    // On one host columns are as good as each other, but for the ways that their shares take.
    const int columns = view_.hosts > 1 || layers_ > 1 ? view_.devices : static_cast<int>(ways_.size());
    for (int column = 0; column < columns; ++column) {
      for (const std::vector<Rank>& hosts : hosts_) trees.push_back(tree(column, hosts));
    }
    return trees;
  }

 private:
  Tree tree(int column, const std::vector<Rank>& hosts) const {
    Tree tree{root_rank_, std::vector<Rank>(static_cast<size_t>(view_.nranks), -1), 1};
    const std::vector<int>& way = ways_[static_cast<size_t>(column) % ways_.size()];
    for (int host = 0; host < view_.hosts; ++host) {
      const int above = hosts[static_cast<size_t>(host)];
      const int first_layer = (above < 0 ? root_.device : column) / in_layer_;
      for (int layer = 0; layer < layers_; ++layer) {
        const bool is_first = layer == first_layer;
        const int top = above < 0 && is_first ? root_.device : layer * in_layer_ + column % in_layer_;
        std::optional<Rank> parent;
        if (!is_first) {
          parent = rank(host, towards(layer, first_layer) * in_layer_ + column % in_layer_);
        } else if (above >= 0) {
          parent = rank(above, column);
        }
        hang_layer(tree, host, layer, top, parent.value_or(-1), way);
      }
    }
    return tree;
  }

  // The devices of a layer one below the other, from `top` on, and the cores of each: every port has each byte once.
  void hang_layer(Tree& tree, int host, int layer, int top, Rank above, const std::vector<int>& way) const {
    const auto begin = std::ranges::find(way, top % in_layer_) - way.begin();
    for (int i = 0; i < in_layer_; ++i) {
      const int device = layer * in_layer_ + way[static_cast<size_t>((begin + i) % in_layer_)];
      const Rank self = rank(host, device);
      tree.parent[static_cast<size_t>(self)] = above;
      Rank last = self;
      for (int core = 0; core < view_.cores; ++core) {
        const Rank mate = view_.rank(host, device, core);
        if (mate != self) tree.parent[static_cast<size_t>(mate)] = std::exchange(last, mate);
      }
      above = self;
    }
  }

  // The layer beside `layer` on the short way round.
  int towards(int layer, int target) const {
    const int ahead = (target - layer + layers_) % layers_;
    return (layer + (2 * ahead <= layers_ ? 1 : layers_ - 1)) % layers_;
  }
  Rank rank(int host, int device) const { return view_.rank(host, device, root_.core); }

  const MachineView& view_;
  Rank root_rank_;
  Spot root_;
  int layers_ = 1, in_layer_ = 1;
  std::vector<std::vector<int>> ways_;    // round a layer
  std::vector<std::vector<Rank>> hosts_;  // the parent of each, of one tree or two
};

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

std::vector<Tree> column_trees(const MachineView& view, Rank root) {
  if (!view.follows_fabric || view.nranks < 3) return {};
  return ColumnTrees(view, root).make();
}

std::vector<Tree> column_gather_tree(const MachineView& view, Rank root) {
  if (!view.follows_fabric || view.nranks < 3) return {};
  const Spot top = spot_of(view, root);
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
