// SPDX-License-Identifier: Apache-2.0
//
// What the plans of all ranks over the same trees have in common (tree.cc): children, subtrees and channels.
#include <algorithm>

#include "algorithms/collectives.h"
#include "algorithms/shape.h"
#include "base/assert.h"

namespace ccom {

TreePlans::TreePlans(const std::vector<Tree>& trees) : trees_(trees) {
  CCOM_ASSERT(!trees.empty());
  const size_t ranks = trees[0].parent.size();
  for (const Tree& tree : trees) {
    sizes_.push_back(subtree_sizes(tree));
    std::vector<uint32_t>& first = first_child_.emplace_back(ranks + 1);
    for (const Rank parent : tree.parent) first[static_cast<size_t>(parent) + 1] += parent >= 0 ? 1 : 0;
    for (size_t r = 0; r < ranks; ++r) first[r + 1] += first[r];
    std::vector<Rank>& children = children_.emplace_back(first.back());
    std::vector<uint32_t> fill(first.begin(), first.end() - 1);
    for (size_t r = 0; r < ranks; ++r) {
      if (tree.parent[r] >= 0) children[fill[static_cast<size_t>(tree.parent[r])]++] = static_cast<Rank>(r);
    }
    // As many trees before this one have the edge, in either direction.
    std::vector<uint8_t>& channels = channels_.emplace_back(ranks);
    const std::span before(trees.data(), channels_.size() - 1);
    for (size_t r = 0; r < ranks; ++r) {
      const Rank parent = tree.parent[r];
      if (parent < 0) continue;
      const auto shared = std::ranges::count_if(before, [&](const Tree& other) {
        return other.parent[r] == parent || other.parent[static_cast<size_t>(parent)] == static_cast<Rank>(r);
      });
      CCOM_ASSERT(shared < kMostChannels);
      channels[r] = static_cast<uint8_t>(shared);
    }
  }
}

std::span<const Rank> TreePlans::children(size_t tree, Rank rank) const {
  const std::vector<uint32_t>& first = first_child_[tree];
  const auto r = static_cast<size_t>(rank);
  return std::span(children_[tree]).subspan(first[r], first[r + 1] - first[r]);
}

// A rank's children are never due later than itself, and of what is due at once lower trees go first: sends that wait
// for one another form no circle.
std::vector<TreePlans::Due> TreePlans::blocks_due(Rank rank) const {
  std::vector<Due> all;
  for (size_t t = 0; t < trees_.size(); ++t) {
    const auto lead = int64_t{trees_[t].lead[static_cast<size_t>(rank)]};
    for (uint32_t i = 0; i < static_cast<uint32_t>(trees_[t].chunks); ++i)
      all.push_back({int64_t{i} * Tree::kLeadUnits - lead, t, i});
  }
  std::ranges::sort(all);
  return all;
}

int TreePlans::channels() const {
  int most = 1;
  for (size_t t = 0; t < trees_.size(); ++t) {
    for (size_t r = 0; r < channels_[t].size(); ++r) {
      if (trees_[t].parent[r] >= 0) most = std::max(most, channels_[t][r] + 1);
    }
  }
  return most;
}

int channels_of(const std::vector<Tree>& trees) { return TreePlans(trees).channels(); }

}  // namespace ccom
