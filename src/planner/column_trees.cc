// SPDX-License-Identifier: Apache-2.0
#include "planner/column_trees.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "algorithms/cycles.h"
#include "algorithms/shape.h"
#include "planner/even_trees.h"

namespace ccom {
namespace {

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
  ColumnTrees(const MachineView& view, Rank root, Collective collective)
      : view_(view), root_rank_(root), root_(view.spot(root)), sends_(collective == Collective::Broadcast) {
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

  bool has_layers() const { return layers_ > 1; }
  const std::vector<std::vector<Rank>>& hosts() const { return hosts_; }

  std::vector<Tree> make() const {
    std::vector<Tree> trees;
    if (ways_.empty()) return trees;
    // On one host columns are as good as each other, but for the ways that their shares take.
    const int columns = view_.hosts > 1 || layers_ > 1 ? view_.devices : static_cast<int>(ways_.size());
    const std::vector<size_t> ways = ways_at_root(columns);
    for (int column = 0; column < columns; ++column) {
      for (const std::vector<Rank>& hosts : hosts_) {
        trees.push_back(tree(column, static_cast<int>(trees.size()), ways_[ways[static_cast<size_t>(column)]], hosts));
      }
    }
    return trees;
  }

 private:
  // A layer in which a tree is made, the core of its devices that passes on, and the tree's number.
  struct Layer {
    Tree& tree;
    const std::vector<int>& way;
    int host, layer, core, number;
  };

  // By column. On the root's host each goes the way on which its device is soonest, as many on each way; a reduction
  // the same way as on other hosts.
  std::vector<size_t> ways_at_root(int columns) const {
    std::vector<size_t> chosen(static_cast<size_t>(columns), ways_.size());
    std::vector<std::array<size_t, 3>> choices;  // distance, column, way
    const auto root = static_cast<int>(root_.device % in_layer_);
    for (size_t column = 0; column < chosen.size(); ++column) {
      for (size_t way = 0; way < ways_.size(); ++way) {
        const int distance = place(ways_[way], static_cast<int>(column) % in_layer_) - place(ways_[way], root);
        const bool is_usual = column % ways_.size() == way;
        if (sends_ || is_usual) choices.push_back({static_cast<size_t>(distance + in_layer_) % in_layer_, column, way});
      }
    }
    std::ranges::sort(choices);
    std::vector<size_t> left(ways_.size(), (chosen.size() + ways_.size() - 1) / ways_.size());
    for (const auto& [distance, column, way] : choices) {
      if (chosen[column] < ways_.size() || left[way] == 0) continue;
      chosen[column] = way;
      --left[way];
    }
    return chosen;
  }

  Tree tree(int column, int number, const std::vector<int>& way_at_root, const std::vector<Rank>& hosts) const {
    Tree tree{root_rank_, std::vector<Rank>(static_cast<size_t>(view_.nranks), -1), 1};
    const std::vector<int>& way = ways_[static_cast<size_t>(column) % ways_.size()];
    const int core = sends_ ? (root_.core + number) % view_.cores : root_.core;
    for (int host = 0; host < view_.hosts; ++host) {
      const int above = hosts[static_cast<size_t>(host)];
      const int first_layer = (above < 0 ? root_.device : column) / in_layer_;
      for (int layer = 0; layer < layers_; ++layer) {
        const bool is_first = layer == first_layer;
        const int top = above < 0 && is_first ? root_.device : layer * in_layer_ + column % in_layer_;
        Rank parent = -1;
        if (!is_first) {
          parent = rank(host, towards(layer, first_layer) * in_layer_ + column % in_layer_, core);
        } else if (above >= 0) {
          parent = rank(above, column, core);
        }
        hang_layer({tree, above < 0 ? way_at_root : way, host, layer, core, number}, top % in_layer_, parent);
      }
    }
    return tree;
  }

  // Every port has each byte once. The root sends one way round, others both, which is half as far. Up, the devices at
  // the ends, which have all of their chunks at once, hold up others' sums on their way, so there is one end.
  void hang_layer(const Layer& layer, int top, Rank above) const {
    const int begin = place(layer.way, top);
    const int ahead = sends_ && above >= 0 ? in_layer_ / 2 : in_layer_ - 1;
    const Rank first = hang_line(layer, begin, 1, 1, above);
    const Rank last = hang_line(layer, begin + 1, 1, ahead, first);
    hang_line(layer, begin - 1, -1, in_layer_ - 1 - ahead, first);
    if (above < 0) hang_mates(layer, root_.device, sends_ && layer.number % view_.cores > 0 ? last : first);
  }

  // Devices of a layer one below the other, from a place on the way on. The last one.
  Rank hang_line(const Layer& layer, int begin, int direction, int count, Rank above) const {
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>((begin + direction * i + 2 * in_layer_) % in_layer_);
      const int device = layer.layer * in_layer_ + layer.way[at];
      const Rank self = rank(layer.host, device, layer.core);
      layer.tree.parent[static_cast<size_t>(self)] = above;
      if (self != root_rank_) hang_mates(layer, device, self);
      above = self;
    }
    return above;
  }

  // The other cores of a device: of a reduction one below the other, else all below the one that passes on, another one
  // in each tree. The root's port is too slow for all that its mates need: in most trees one has it from the last
  // device.
  void hang_mates(const Layer& layer, int device, Rank above) const {
    const Rank self = rank(layer.host, device, layer.core);
    std::vector<Rank> mates;
    for (int core = 0; core < view_.cores; ++core) {
      if (const Rank mate = view_.rank(layer.host, device, core); mate != self) mates.push_back(mate);
    }
    if (sends_ && !mates.empty()) {
      const auto turn = static_cast<size_t>(layer.number + layer.number / view_.cores) % mates.size();
      std::ranges::rotate(mates, mates.begin() + static_cast<std::ptrdiff_t>(turn));
    }
    bool is_from_afar = above != self;
    for (const Rank mate : mates) {
      layer.tree.parent[static_cast<size_t>(mate)] = above;
      if (!sends_ || std::exchange(is_from_afar, false)) above = mate;
    }
  }

  // The layer beside `layer` on the short way round.
  int towards(int layer, int target) const {
    const int ahead = (target - layer + layers_) % layers_;
    return (layer + (2 * ahead <= layers_ ? 1 : layers_ - 1)) % layers_;
  }
  static int place(const std::vector<int>& way, int device) {
    return static_cast<int>(std::ranges::find(way, device) - way.begin());
  }
  // The one of a device that passes on.
  Rank rank(int host, int device, int core) const {
    const bool is_at_root = host == root_.host && device == root_.device;
    return is_at_root ? root_rank_ : view_.rank(host, device, core);
  }

  const MachineView& view_;
  Rank root_rank_;
  Spot root_;
  bool sends_;  // the root; else it gets
  int layers_ = 1, in_layer_ = 1;
  std::vector<std::vector<int>> ways_;    // round a layer
  std::vector<std::vector<Rank>> hosts_;  // the parent of each, of one tree or two
};

}  // namespace

std::vector<Tree> column_trees(const MachineView& view, Rank root, Collective collective) {
  if (!view.follows_fabric || view.nranks < 3) return {};
  const ColumnTrees cycles(view, root, collective);
  return collective == Collective::Broadcast && cycles.has_layers() ? even_trees(view, root, cycles.hosts())
                                                                    : cycles.make();
}

}  // namespace ccom
