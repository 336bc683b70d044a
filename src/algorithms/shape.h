// SPDX-License-Identifier: Apache-2.0
//
// Shapes: all that an algorithm is told about the machine. Plain values, derived by the planner from a topology.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"

namespace ccom {

// How a group of ranks exchanges data within one level.
enum class Pattern : uint8_t {
  Direct,             // everybody with everybody: 1 step
  Ring,               // neighbours in list order: p - 1 steps
  Circulant,          // ceil(lg p) rounds, any p
  Torus,              // bucket: rings along one dimension after another, several streams at once
  Swing,              // halving and doubling with Swing's partners: lg p rounds, dimensions that are powers of two
  Rings,              // rings along edge-disjoint Hamiltonian cycles, both ways round each at once
  OneShot,            // allreduce core: everybody sends everything to everybody
  RecursiveDoubling,  // allreduce core: lg p exchanges of everything; with dims, along one after another
  SwingLatency,       // allreduce core: lg p exchanges of everything with Swing's partners
};

// A share of the data that has an order of dimensions and a channel of its own (Torus, Swing, SwingLatency). On the way
// down it is split along order[0] first; on the way up that dimension comes last.
struct TorusStream {
  std::vector<uint8_t> order;  // of all dims
  int direction = 1;           // +1 or -1: which way round a ring; the sign of Swing's distances
  uint32_t weight = 1;         // it takes weight / sum of weights of the data
  friend bool operator==(const TorusStream&, const TorusStream&) = default;
};

// Disjoint groups of ranks. A group's first `owners` members share the data (each ends a reduce-scatter with 1/owners
// of it); only Direct may have members beyond them.
struct Level {
  Pattern pattern = Pattern::Direct;
  int owners = 1;
  std::vector<std::vector<Rank>> groups{};
  // A group's list is a grid of one to three dimensions, the last one running fastest, rings along each.
  std::vector<int> dims{};
  std::vector<TorusStream> streams{};           // none: default_streams(dims) (streams.h)
  std::vector<std::vector<uint32_t>> cycles{};  // Rings: members of a group, by index, in the order of each cycle
  friend bool operator==(const Level&, const Level&) = default;
};

// Reduce-scatter down the levels, an allreduce core (optional) at the bottom, allgather up the levels. One level is a
// flat algorithm, several are a hierarchical one.
struct Staged {
  std::vector<Level> levels{};
  std::vector<Level> core{};  // none or one
  // The data (of each unit) is cut into so many parts that follow one another through the levels: while one is on one
  // level's links, the next is on those of the level before. For long vectors whose levels use different links.
  int windows = 1;
  friend bool operator==(const Staged&, const Staged&) = default;
};

// How many channels between two ranks staged_plan may use: the product of the levels' streams, and as many again for
// the way up if there are several windows. At most kMostChannels.
int channels_of(const Staged& shape);
constexpr int kMostChannels = 256;

// A spanning tree. `parent[root]` is -1. `chunks`: into how many blocks a vector is cut to pipeline it.
struct Tree {
  Rank root = 0;
  std::vector<Rank> parent;
  int chunks = 1;
  friend bool operator==(const Tree&, const Tree&) = default;
};

// k-nomial tree over ranks 0..n-1 rotated so that `root` is its root: ceil(log_radix n) levels.
Tree knomial_tree(int nranks, Rank root, int radix);

// Two binary trees, nobody inner in both (double_tree.cc), for `chunks` chunks each. root < 0: all ranks are in the
// trees and each has a root of its own (AllReduce); else both have `root` (Broadcast, Reduce).
std::vector<Tree> double_tree(int nranks, Rank root, int chunks);

// A level of one pattern over all ranks 0..n-1 in rank order.
Level flat_level(Pattern pattern, int nranks);

// One level per dimension of more than one member, the last dimension first (down: along rows, then along columns).
// `groups` are grids of `dims`. So Circulant, Ring and Direct run on grids.
std::vector<Level> dimension_levels(Pattern pattern, const std::vector<int>& dims,
                                    const std::vector<std::vector<Rank>>& groups);

// Mixed-radix exchange: hosts of equally many ranks, each round between as many hosts as a radix says, through as many
// ranks of each.
struct Radix {
  std::vector<std::vector<Rank>> hosts{};  // the ranks of each host, lists being grids of `dims`
  // The devices' dims, rings along each, and last the cores of a device, which reach one another; the last dimension
  // runs fastest. {g}: g ranks that reach one another.
  std::vector<int> dims{};
  // Each at most the ranks of a host. Their product is at most the hosts and at least half of them; hosts beyond it are
  // folded into the first ones.
  std::vector<int> radices{};
  friend bool operator==(const Radix&, const Radix&) = default;
};

// Factors up to `most` with as few rounds as possible and, of those, the most equal ones, largest first: exactly
// `hosts`, unless fewer factors and a fold (two rounds) come cheaper. Empty for one host, and if `most` < 2.
std::vector<int> choose_radices(int hosts, int most);

}  // namespace ccom
