// SPDX-License-Identifier: Apache-2.0
//
// Ready-made shapes, and what they need. The types: plan/shape.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/shape.h"

namespace ccom {

// How many channels between two ranks staged_plan may use: the product of the levels' streams, and as many again for
// the way up if there are several windows. At most kMostChannels.
int channels_of(const Staged& shape);
constexpr int kMostChannels = 256;
// How many channels between two ranks any member's plan uses.
int channels_of(const MessageAlgorithm& algorithm);

// k-nomial tree over ranks 0..n-1 rotated so that `root` is its root: ceil(log_radix n) levels.
Tree knomial_tree(int nranks, Rank root, int radix);

// Two binomial trees back to back: the ranks above `root` and those below it, mirrored. Every subtree is a run of
// ranks, so a reduction keeps their order. ceil(log2 n) levels at most.
Tree in_order_tree(int nranks, Rank root);

// Bine's tree (bine.cc) over ranks that are near one another in `order`: ceil(log2 n) levels, and every subtree is a
// run of it, or wraps around its end.
Tree bine_tree(const std::vector<Rank>& order, Rank root);

// Two binary trees, nobody inner in both (double_tree.cc), for `chunks` chunks each. root < 0: all ranks are in the
// trees and each has a root of its own (AllReduce); else both have `root` (Broadcast, Reduce).
std::vector<Tree> double_tree(int nranks, Rank root, int chunks);

// By rank, how many hang at it, itself counted.
std::vector<uint32_t> subtree_sizes(const Tree& tree);

// A level of one pattern over all ranks 0..n-1 in rank order.
Level flat_level(Pattern pattern, int nranks);

// One level per dimension of more than one member, the last dimension first (down: along rows, then along columns).
// `groups` are grids of `dims`. So Circulant, Ring and Direct run on grids.
std::vector<Level> dimension_levels(Pattern pattern, const std::vector<int>& dims,
                                    const std::vector<std::vector<Rank>>& groups);

// Factors up to `most` with as few rounds as possible and, of those, the most equal ones, largest first: exactly
// `hosts`, unless fewer factors and a fold (two rounds) come cheaper. Empty for one host, and if `most` < 2.
std::vector<int> choose_radices(int hosts, int most);

}  // namespace ccom
