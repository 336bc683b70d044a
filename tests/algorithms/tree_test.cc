// SPDX-License-Identifier: Apache-2.0
//
// Trees: every collective over k-nomial trees, every number of ranks, root and radix; the double tree, its shape and
// its traffic.
#include <gtest/gtest.h>

#include <cmath>

#include "algorithms/cost.h"
#include "tests/algorithms/prove.h"
#include "tests/plan/fabrics.h"

namespace ccom {
namespace {

TEST(Trees, RootedCollectivesAreProvedForEveryRadixAndRoot) {
  for (int n = 1; n <= kMaxRanks; ++n) {
    for (const int radix : {2, 3, 4, 8}) {
      for (const Rank root : {0, n / 2, n - 1}) {
        Tree tree = knomial_tree(n, root, radix);
        for (const int chunks : {1, 3}) {
          tree.chunks = chunks;
          for (const bool in_place : {false, true}) {
            for (const Collective collective :
                 {Collective::Broadcast, Collective::Reduce, Collective::Gather, Collective::Scatter}) {
              prove(collective, n, root, in_place, [&](const Call& call) { return tree_plan(call, tree, "knomial"); });
            }
            for (const Collective collective : kWholeAndHalves) {
              if (radix > 3 || n > 17) continue;
              prove(collective, n, -1, in_place, [&](const Call& call) { return tree_plan(call, tree, "tree"); });
            }
          }
        }
      }
    }
  }
}

TEST(Trees, KnomialHasLogarithmicDepth) {
  for (int n = 2; n <= 1000; n += 37) {
    const Tree tree = knomial_tree(n, 5 % n, 4);
    for (Rank r = 0; r < n; ++r) {
      int depth = 0;
      for (Rank at = r; tree.parent[static_cast<size_t>(at)] >= 0; at = tree.parent[static_cast<size_t>(at)]) ++depth;
      EXPECT_LE(depth, static_cast<int>(std::ceil(std::log(n) / std::log(4) - 1e-9)));
    }
  }
}

std::vector<int> children_of(const Tree& tree) {
  std::vector<int> children(tree.parent.size());
  for (const Rank parent : tree.parent) {
    if (parent >= 0) ++children[static_cast<size_t>(parent)];
  }
  return children;
}

TEST(DoubleTree, IsProvedForEveryRootAndChunks) {
  for (int n = 1; n <= kMaxRanks; ++n) {
    for (const int chunks : {1, 3}) {
      for (const bool in_place : {false, true}) {
        const std::vector<Tree> trees = double_tree(n, -1, chunks);
        prove(Collective::AllReduce, n, -1, in_place,
              [&](const Call& call) { return tree_plan(call, trees, "double"); });
        for (Rank root = 0; root < n; root += 1 + n / 4) {
          const std::vector<Tree> rooted = double_tree(n, root, chunks);
          for (const Collective collective : {Collective::Broadcast, Collective::Reduce}) {
            prove(collective, n, root, in_place, [&](const Call& call) { return tree_plan(call, rooted, "double"); });
          }
        }
      }
    }
  }
}

TEST(DoubleTree, HasNobodyInnerTwiceAndTwoChildrenAtMost) {
  for (int n = 2; n <= 1000; n += n < 70 ? 1 : 97) {
    for (const Rank root : {-1, 0, n / 3}) {
      const std::vector<Tree> trees = double_tree(n, root, 1);
      const std::vector<int> first = children_of(trees[0]);
      const std::vector<int> second = children_of(trees[1]);
      for (Rank r = 0; r < n; ++r) {
        const auto i = static_cast<size_t>(r);
        EXPECT_LE(std::max(first[i], second[i]), r == root ? 1 : 2);
        if (r != root) {
          EXPECT_TRUE(first[i] == 0 || second[i] == 0) << "rank " << r << " of " << n << ", root " << root;
        }
      }
    }
  }
}

TEST(DoubleTree, HasTheDepthAndTheTrafficOfItsTrees) {
  for (const int n : {2, 7, 16, 33, 100}) {
    for (const Rank root : {-1, 0}) {
      for (const int chunks : {1, 4}) {
        const std::vector<Tree> trees = double_tree(n, root, chunks);
        const Collective collective = root < 0 ? Collective::AllReduce : Collective::Broadcast;
        std::vector<Plan> plans;
        for (Rank r = 0; r < n; ++r) plans.push_back(tree_plan({collective, r, n, root, false}, trees, "double"));
        // In lock step nothing shares a wire: a tree's depth remains.
        const Result<LintReport> run = lint(plans, mesh_fabric(n));
        const int log = static_cast<int>(std::floor(std::log2(root < 0 ? n : n - 1)));
        EXPECT_EQ(static_cast<int>(run->rounds.size()), root < 0 ? 2 * log : log + 1) << n << " ranks, root " << root;
        uint32_t most = 0;
        for (const Plan& plan : plans) {
          uint32_t sent = 0;
          for (const Step& step : plan.steps) sent += step.kind == StepKind::Send ? step.count : 0;
          most = std::max(most, sent);
        }
        EXPECT_LE(most, static_cast<uint32_t>(2 * chunks) * (root < 0 ? 2 : 1)) << "2n and n";
      }
    }
  }
}

}  // namespace
}  // namespace ccom
