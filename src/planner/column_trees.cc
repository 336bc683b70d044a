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

// The devices in the order of each way round.
std::vector<std::vector<int>> ways_round(const MachineView& view) {
  const int devices = view.devices;
  std::vector<std::vector<int>> ways;
  if (!view.all_linked && !view.dims.empty() && devices > 2) {
    for (const std::vector<uint32_t>& cycle : hamiltonian_cycles(view.dims))
      ways.emplace_back(cycle.begin(), cycle.end());
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

// Between hosts: the parent of each, of one tree or two.
std::vector<std::vector<Rank>> trees_of_hosts(const MachineView& view, int root) {
  if (view.hosts == 1) return {{-1}};
  if (view.hosts == 2) return {knomial_tree(2, root, 2).parent};
  std::vector<std::vector<Rank>> trees;
  for (const Tree& tree : double_tree(view.hosts, root, 1)) trees.push_back(tree.parent);
  return trees;
}

bool has_slow_dimension(const MachineView& view) {
  return view.dims.size() == 3 && view.dim_speeds[0].bytes_per_second < view.dim_speeds[1].bytes_per_second;
}

class ColumnTrees {
 public:
  ColumnTrees(const MachineView& view, Rank root, Collective collective)
      : view_(view),
        root_rank_(root),
        root_(view.spot(root)),
        sends_(collective == Collective::Broadcast),
        ways_(ways_round(view)),
        hosts_(trees_of_hosts(view, root_.host)) {}

  std::vector<Tree> make() const {
    std::vector<Tree> trees;
    if (ways_.empty()) return trees;
    // On one host columns are as good as each other, but for the ways that their shares take.
    const int columns = view_.hosts > 1 ? view_.devices : static_cast<int>(ways_.size());
    const std::vector<size_t> ways = ways_at_root(columns);
    for (int column = 0; column < columns; ++column) {
      for (const std::vector<Rank>& hosts : hosts_) {
        trees.push_back(tree(column, static_cast<int>(trees.size()), ways_[ways[static_cast<size_t>(column)]], hosts));
      }
    }
    return trees;
  }

 private:
  // A host of a tree, the core of its devices that passes on, and the tree's number.
  struct OnHost {
    Tree& tree;
    const std::vector<int>& way;
    int host, core, number;
  };

  // By column. On the root's host each goes the way on which its device is soonest, as many on each way.
  std::vector<size_t> ways_at_root(int columns) const {
    std::vector<size_t> chosen(static_cast<size_t>(columns), ways_.size());
    std::vector<std::array<size_t, 3>> choices;  // distance, column, way
    for (size_t column = 0; column < chosen.size(); ++column) {
      for (size_t way = 0; way < ways_.size(); ++way) {
        const int distance = place(ways_[way], static_cast<int>(column)) - place(ways_[way], root_.device);
        choices.push_back({static_cast<size_t>((distance + view_.devices) % view_.devices), column, way});
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
      const OnHost on{tree, above < 0 ? way_at_root : way, host, core, number};
      hang_host(on, above < 0 ? root_.device : column, above < 0 ? -1 : rank(above, column, core));
    }
    return tree;
  }

  // Every port has each byte once. The root sends one way round, others both, which is half as far.
  void hang_host(const OnHost& on, int top, Rank above) const {
    const int begin = place(on.way, top);
    const int ahead = above >= 0 ? view_.devices / 2 : view_.devices - 1;
    const Rank first = hang_line(on, begin, 1, 1, above);
    const Rank last = hang_line(on, begin + 1, 1, ahead, first);
    hang_line(on, begin - 1, -1, view_.devices - 1 - ahead, first);
    if (above < 0) hang_mates(on, root_.device, sends_ && on.number % view_.cores > 0 ? last : first);
  }

  // Devices one below the other, from a place on the way on. The last one.
  Rank hang_line(const OnHost& on, int begin, int direction, int count, Rank above) const {
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>((begin + direction * i + 2 * view_.devices) % view_.devices);
      const int device = on.way[at];
      const Rank self = rank(on.host, device, on.core);
      on.tree.parent[static_cast<size_t>(self)] = above;
      if (self != root_rank_) hang_mates(on, device, self);
      above = self;
    }
    return above;
  }

  // The other cores of a device: of a reduction one below the other, else all below the one that passes on, another one
  // in each tree. The root's port is too slow for all that its mates need: in most trees one has it from the last
  // device.
  void hang_mates(const OnHost& on, int device, Rank above) const {
    const Rank self = rank(on.host, device, on.core);
    std::vector<Rank> mates;
    for (int core = 0; core < view_.cores; ++core) {
      if (const Rank mate = view_.rank(on.host, device, core); mate != self) mates.push_back(mate);
    }
    if (sends_ && !mates.empty()) {
      const auto turn = static_cast<size_t>(on.number + on.number / view_.cores) % mates.size();
      std::rotate(mates.begin(), mates.begin() + static_cast<std::ptrdiff_t>(turn), mates.end());
    }
    bool is_from_afar = above != self;
    for (const Rank mate : mates) {
      on.tree.parent[static_cast<size_t>(mate)] = above;
      if (!sends_ || std::exchange(is_from_afar, false)) above = mate;
    }
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
  const Rank root_rank_;
  const Spot root_;
  const bool sends_;  // the root; else it gets
  const std::vector<std::vector<int>> ways_;
  const std::vector<std::vector<Rank>> hosts_;
};

}  // namespace

std::vector<Tree> column_trees(const MachineView& view, Rank root, Collective collective) {
  if (!view.follows_fabric || view.nranks < 3) return {};
  return has_slow_dimension(view) ? even_trees(view, root, trees_of_hosts(view, view.spot(root).host))
                                  : ColumnTrees(view, root, collective).make();
}

}  // namespace ccom
