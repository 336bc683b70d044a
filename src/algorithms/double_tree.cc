// SPDX-License-Identifier: Apache-2.0
//
// Two binary trees in which nobody is an inner rank twice: half of the vector through each, pipelined in chunks.
//
// Members 1..m form a tree in their order: i hangs between i - 2^k and i + 2^k, 2^k its lowest bit, so that odd ones
// are leaves and even ones inner. The second tree numbers the members one further (odd m) or backwards (even m), which
// makes even ones odd. An allreduce takes all ranks as members; in rooted collectives they are the others, and both
// trees' tops hang below the root.
//
//   7 ranks, first tree        4             Depth floor(lg p) (rooted: at most one more) and 2 chunks in each
//   (members)              2       6         direction per tree: every rank sends 2n for an allreduce, n one way, where
//                        1   3   5   7       one binary tree's inner ranks send half more and its leaves idle.
//
// For vectors of middle size over a switched network. One rounding per level. Source: Sanders, Speck & Traff, Two-tree
// algorithms for full bandwidth broadcast, reduction and scan, Parallel Computing 35(12), 2009.
#include <bit>

#include "algorithms/shape.h"
#include "base/assert.h"

namespace ccom {
namespace {

// The member that i of 1..m hangs below; 0 for the top, the largest power of two. Places beyond m are skipped upwards.
uint32_t above(uint32_t i, uint32_t m) {
  if (i == std::bit_floor(m)) return 0;
  do {
    const uint32_t low = i & (~i + 1);
    i = (i & (low << 1)) != 0 ? i - low : i + low;  // the neighbour whose lowest bit is the next one
  } while (i > m);
  return i;
}

}  // namespace

std::vector<Tree> double_tree(int nranks, Rank root, int chunks) {
  CCOM_ASSERT(root < nranks && chunks >= 1);
  const bool rooted = root >= 0;
  const auto members = static_cast<uint32_t>(rooted ? nranks - 1 : nranks);
  // Ranks of members: in order after the root, which is nobody's member.
  const auto rank_of = [&](uint32_t member) {
    return rooted ? static_cast<Rank>((static_cast<uint32_t>(root) + member) % static_cast<uint32_t>(nranks))
                  : static_cast<Rank>(member - 1);
  };
  std::vector<Tree> trees;
  for (const bool second : {false, true}) {
    const auto renumbered = [&](uint32_t i) {
      if (!second) return i;
      return members % 2 == 0 ? members + 1 - i : i % members + 1;
    };
    Tree& tree = trees.emplace_back(Tree{root, std::vector<Rank>(static_cast<size_t>(nranks), -1), chunks});
    for (uint32_t i = 1; i <= members; ++i) {
      const uint32_t parent = above(i, members);
      const Rank self = rank_of(renumbered(i));
      if (parent == 0 && !rooted) tree.root = self;
      tree.parent[static_cast<size_t>(self)] = parent > 0 ? rank_of(renumbered(parent)) : rooted ? root : -1;
    }
  }
  return trees;
}

}  // namespace ccom
