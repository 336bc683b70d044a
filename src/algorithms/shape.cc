// SPDX-License-Identifier: Apache-2.0
#include "algorithms/shape.h"

#include <algorithm>
#include <numeric>

#include "algorithms/collectives.h"
#include "algorithms/streams.h"
#include "base/assert.h"

namespace ccom {

// Relative rank v = a * radix^j + rest of lower digits hangs below v with its lowest non-zero digit cleared.
Tree knomial_tree(int nranks, Rank root, int radix) {
  CCOM_ASSERT(radix >= 2 && root >= 0 && root < nranks);
  Tree tree{root, std::vector<Rank>(static_cast<size_t>(nranks), -1), 1};
  for (int64_t v = 1; v < nranks; ++v) {
    int64_t power = 1;
    while (v / power % radix == 0) power *= radix;
    const int64_t above = v - v / power % radix * power;
    tree.parent[static_cast<size_t>((v + root) % nranks)] = static_cast<Rank>((above + root) % nranks);
  }
  return tree;
}

// A rank at a distance from the root hangs below the one at that distance with its lowest bit cleared.
Tree in_order_tree(int nranks, Rank root) {
  CCOM_ASSERT(root >= 0 && root < nranks);
  Tree tree{root, std::vector<Rank>(static_cast<size_t>(nranks), -1), 1};
  for (Rank rank = 0; rank < nranks; ++rank) {
    const Rank distance = rank < root ? root - rank : rank - root;
    const Rank above = distance & (distance - 1);
    if (rank != root) tree.parent[static_cast<size_t>(rank)] = rank < root ? root - above : root + above;
  }
  return tree;
}

std::vector<uint32_t> subtree_sizes(const Tree& tree) {
  const size_t n = tree.parent.size();
  std::vector<uint32_t> sizes(n, 1), children_left(n);
  for (const Rank parent : tree.parent) {
    if (parent >= 0) ++children_left[static_cast<size_t>(parent)];
  }
  for (size_t leaf = 0; leaf < n; ++leaf) {
    // Up from it, as far as all others below have been counted.
    for (size_t at = leaf; children_left[at] == 0 && tree.parent[at] >= 0;) {
      const auto parent = static_cast<size_t>(tree.parent[at]);
      children_left[at] = UINT32_MAX;
      sizes[parent] += sizes[at];
      if (--children_left[parent] > 0) break;
      at = parent;
    }
  }
  return sizes;
}

Level flat_level(Pattern pattern, int nranks) {
  CCOM_ASSERT(nranks >= 1);
  Level level{.pattern = pattern, .owners = nranks};
  level.groups.emplace_back(static_cast<size_t>(nranks));
  std::iota(level.groups[0].begin(), level.groups[0].end(), 0);
  return level;
}

std::vector<Level> dimension_levels(Pattern pattern, const std::vector<int>& dims,
                                    const std::vector<std::vector<Rank>>& groups) {
  std::vector<Level> levels;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    Level& level = levels.emplace_back(Level{.pattern = pattern, .owners = dims[d]});
    for (const std::vector<Rank>& ranks : groups) {
      for (uint32_t member = 0; member < ranks.size(); ++member) {
        const Grid grid(dims, member);
        if (grid.coordinate(static_cast<uint8_t>(d)) != 0) continue;
        level.groups.push_back(grid.line({&ranks, member}, static_cast<uint8_t>(d)));
      }
    }
  }
  return levels;
}

int channels_of(const MessageAlgorithm& algorithm) {
  switch (algorithm.kind) {
    case MessageAlgorithm::Kind::Staged:
    case MessageAlgorithm::Kind::Routed: return channels_of(algorithm.staged);
    case MessageAlgorithm::Kind::Trees: return channels_of(algorithm.trees);
    case MessageAlgorithm::Kind::Explicit: {
      int most = 1;
      for (const Plan& plan : algorithm.plans) {
        for (const Step& step : plan.steps) most = std::max(most, step.is_transfer() ? step.channel + 1 : 0);
      }
      return most;
    }
    default: return 1;
  }
}

}  // namespace ccom
