// SPDX-License-Identifier: Apache-2.0
//
// Shapes: all that an algorithm is told about the machine. Plain values, derived by the planner from a topology; the
// generators of src/algorithms turn them into plans.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

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
  Bine,               // halving and doubling with near partners in list order: lg p rounds, p a power of two
  BineLatency,        // allreduce core: recursive doubling with Bine's partners, far ones first, any p
};

// A share of the data that has an order of dimensions and a channel of its own (Torus, Swing, SwingLatency). On the way
// down it is split along order[0] first; on the way up that dimension comes last.
struct TorusStream {
  std::vector<uint8_t> order;  // of all dims
  // +1 or -1: which way round a ring; the sign of Swing's distances. 0: both ways at once, with Torus and an even
  // weight.
  int direction = 1;
  uint32_t weight = 1;  // it takes weight / sum of weights of the data
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
  // Where units belong to ranks: a message carries the parts of many ranks at a time, through scratch in the order of
  // positions, which costs each rank a local permutation of all units. Else one message for each run of one unit.
  bool by_position = false;
  friend bool operator==(const Staged&, const Staged&) = default;
};

// A spanning tree. `parent[root]` is -1. `chunks`: into how many blocks a vector is cut to pipeline it; of units by
// position, in how many messages a rank passes on those of its leaves.
struct Tree {
  Rank root = 0;
  std::vector<Rank> parent;
  int chunks = 1;
  // Sums: inner ranks hand on what they are given, and the root alone combines, in rank order whatever the tree.
  bool gathers = false;
  // Gather and Scatter: units of a subtree travel together, and the root permutes (unit_tree.cc).
  bool by_position = false;
  // Reduce over several trees, by rank; empty: sums go up block by block, of all trees in turn. `lead`: how long before
  // the root a rank has to have a block's sum, in kLeadUnits of the time from one block to the next; not less than its
  // parent. A rank sends what leaves by one wire in the order in which it is due. `egress`: the number of that wire
  // among the rank's, from 1 on.
  std::vector<uint32_t> lead{};
  std::vector<uint8_t> egress{};
  static constexpr uint32_t kLeadUnits = 16;
  friend bool operator==(const Tree&, const Tree&) = default;
};

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

// An algorithm of messages with its shape: all that is needed to make the plan of any member of a group.
struct MessageAlgorithm {
  enum class Kind : uint8_t {
    Staged,    // staged
    Tree,      // tree
    Trees,     // trees
    Radix,     // radix
    Pairwise,  // alltoall: everybody with everybody; send and receive
    Bruck,     // alltoall: by the bits of the way
    Routed,    // alltoall over an allgather by staged, or by tree if that is set
    Blocks,    // every block goes straight from those who give it to those who get it (block_exchange_plan)
    Explicit,  // plans: one for each member, as a plan file gives them
    Bine,      // alltoall: along Bine's butterfly, a power of two of ranks
  };
  std::string name;  // "ring"
  Kind kind = Kind::Staged;
  Staged staged{};
  Tree tree{};
  std::vector<Tree> trees{};
  Radix radix{};
  std::vector<Plan> plans{};
  friend bool operator==(const MessageAlgorithm&, const MessageAlgorithm&) = default;
};

}  // namespace ccom
