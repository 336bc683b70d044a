// SPDX-License-Identifier: Apache-2.0
//
// Trees of broadcasts, reductions, gathers and scatters on clusters of fabrics: that they span all ranks over links
// that exist, that their plans are proved for roots anywhere, and how much their busiest wire carries.
#include "planner/column_trees.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "algorithms/collectives.h"
#include "algorithms/shape.h"
#include "base/collective.h"
#include "plan/verify.h"
#include "planner/bound.h"
#include "planner/machine_view.h"
#include "topology/topology.h"
#include "topology/wires.h"

namespace ccom {
namespace {

constexpr const char* kMachines[] = {
    "torus:4x4",   "ring:6",   "3*torus:2x4", "2*torus:3x3/1", "4*ring:4/1",
    "torus:2x2x3", "switch:5", "3*ring:2",    "trn1.32xlarge", "trn2-ultraserver:x2h/1"};

// Whether two ranks exchange messages: through a switch, of one device, of neighbours on a host, of different hosts.
bool are_linked(const MachineView& view, const Topology& topology, Rank a, Rank b) {
  const Place& from = topology.ranks[static_cast<size_t>(a)];
  const Place& to = topology.ranks[static_cast<size_t>(b)];
  if (view.all_linked || from.host != to.host || from.device == to.device) return true;
  return std::ranges::any_of(view.fabric->links,
                             [&](const Link& link) { return link.from == from.device && link.to == to.device; });
}

void expect_tree(const MachineView& view, const Topology& topology, const Tree& tree) {
  int roots = 0;
  for (Rank rank = 0; rank < topology.nranks(); ++rank) {
    Rank above = rank;
    for (int steps = 0; tree.parent[static_cast<size_t>(above)] >= 0; ++steps) {
      ASSERT_LT(steps, topology.nranks()) << "a circle at rank " << rank;
      above = tree.parent[static_cast<size_t>(above)];
    }
    EXPECT_EQ(above, tree.root);
    const Rank parent = tree.parent[static_cast<size_t>(rank)];
    roots += parent < 0 ? 1 : 0;
    EXPECT_TRUE(parent < 0 || are_linked(view, topology, rank, parent)) << rank << " and " << parent;
  }
  EXPECT_EQ(roots, 1);
}

void expect_proved(Collective collective, int n, Rank root, const std::vector<Tree>& trees) {
  const TreePlans maker(trees);
  std::vector<Plan> plans;
  for (Rank rank = 0; rank < n; ++rank) plans.push_back(maker.make({collective, rank, n, root, false}, "columns"));
  const auto report = verify(plans, 3);
  EXPECT_TRUE(report) << name_of(collective) << " of root " << root << ": " << report.error().message();
}

TEST(ColumnTrees, SpanEveryMachineFromEveryRoot) {
  for (const char* const machine : kMachines) {
    SCOPED_TRACE(machine);
    const Topology topology = *make_topology(machine);
    const MachineView view = machine_view(topology);
    const int n = topology.nranks();
    for (Rank root = 0; root < n; root += 3) {
      const std::vector<Tree> gather = column_gather_tree(view, root);
      EXPECT_EQ(gather.size(), 1u);
      for (const Tree& tree : gather) expect_tree(view, topology, tree);
      for (const Collective collective : {Collective::Broadcast, Collective::Reduce}) {
        const std::vector<Tree> trees = column_trees(view, root, collective);
        EXPECT_FALSE(trees.empty());
        for (const Tree& tree : trees) expect_tree(view, topology, tree);
        expect_proved(collective, n, root, trees);
      }
      expect_proved(Collective::Gather, n, root, gather);
      expect_proved(Collective::Scatter, n, root, gather);
    }
  }
}

// How long the busiest wire is busy, in times of the bound. Over the edge to a rank goes a tree's share of a broadcast;
// of a scatter the parts of the rank and those below it.
double times_bound(const std::string& machine, Collective collective, Rank root) {
  constexpr size_t kBytes = size_t{1} << 30;
  const Topology topology = *make_topology(machine);
  const MachineView view = machine_view(topology);
  const bool is_vector = collective == Collective::Broadcast;
  const std::vector<Tree> trees = is_vector ? column_trees(view, root, collective) : column_gather_tree(view, root);
  const Wires wires(topology);
  std::vector<double> busy_ns(wires.count());
  for (const Tree& tree : trees) {
    const std::vector<uint32_t> sizes = subtree_sizes(tree);
    for (Rank rank = 0; rank < topology.nranks(); ++rank) {
      if (rank == root) continue;
      std::vector<uint32_t> path;
      wires.path(tree.parent[static_cast<size_t>(rank)], rank, path);
      const double part = static_cast<double>(sizes[static_cast<size_t>(rank)]) / topology.nranks();
      const double bytes = kBytes * (is_vector ? 1.0 / static_cast<double>(trees.size()) : part);
      for (const uint32_t wire : path) busy_ns[wire] += bytes * 1e9 / wires[wire].speed.bytes_per_second;
    }
  }
  const Question question{.collective = collective, .bytes = kBytes, .root = root};
  return std::ranges::max(busy_ns) / lower_bound(topology, question, false).bandwidth_ns;
}

// Of a gather the root's links, two of which are slower, have parts to carry in proportion.
TEST(ColumnTrees, AllLinksOfTheRootBringWhatTheyCan) {
  for (const char* const machine : {"trn2-ultraserver/1", "4*trn2-ultraserver/1", "trn2.48xlarge", "torus:8x8"}) {
    for (const Rank root : {0, 37}) EXPECT_LE(times_bound(machine, Collective::Scatter, root), 1.15) << machine;
  }
}

// Of a broadcast the root's links to other layers are used as well, and the ports of all cores of a device.
TEST(ColumnTrees, WiresOfABroadcastAreEven) {
  for (const char* const machine : {"trn2-ultraserver/1", "4*trn2-ultraserver/1", "trn2.48xlarge", "4*torus:8x8/1"}) {
    for (const Rank root : {0, 37}) {
      EXPECT_LE(times_bound(machine, Collective::Broadcast, root), 1.25) << machine << ", root " << root;
    }
  }
}

// Few enough of them have an edge for the channels between two ranks.
TEST(ColumnTrees, OfABroadcastServeWhereTransportsOpenSixteenChannels) {
  for (const char* const machine :
       {"torus:4x4", "trn1.32xlarge", "trn2.48xlarge", "trn2-ultraserver/1", "4*trn2.48xlarge", "16*trn2.48xlarge/1"}) {
    const Topology topology = *make_topology(machine);
    EXPECT_LE(channels_of(column_trees(machine_view(topology), 0, Collective::Broadcast)), 16) << machine;
  }
}

}  // namespace
}  // namespace ccom
