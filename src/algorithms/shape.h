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
  Torus,              // rows x columns grid, row-major in the list, neighbours with wrap-around, 4 directions at once
  OneShot,            // allreduce core: everybody sends everything to everybody
  RecursiveDoubling,  // allreduce core: lg p exchanges of everything
};

// Disjoint groups of ranks. A group's first `owners` members share the data (each ends a reduce-scatter with 1/owners
// of it); only Direct may have members beyond them.
struct Level {
  Pattern pattern = Pattern::Direct;
  int owners = 1;
  int rows = 1, columns = 1;  // Torus
  std::vector<std::vector<Rank>> groups;
  friend bool operator==(const Level&, const Level&) = default;
};

// Reduce-scatter down the levels, an allreduce core (OneShot or RecursiveDoubling; optional) at the bottom, allgather
// up the levels. One level is a flat algorithm, several are a hierarchical one.
struct Staged {
  std::vector<Level> levels;
  std::vector<Level> core;  // none or one
  friend bool operator==(const Staged&, const Staged&) = default;
};

// A spanning tree. `parent[root]` is -1. `chunks`: into how many blocks a vector is cut to pipeline it.
struct Tree {
  Rank root = 0;
  std::vector<Rank> parent;
  int chunks = 1;
  friend bool operator==(const Tree&, const Tree&) = default;
};

// k-nomial tree over ranks 0..n-1 rotated so that `root` is its root: ceil(log_radix n) levels.
Tree knomial_tree(int nranks, Rank root, int radix);

// A level of one pattern over all ranks 0..n-1 in rank order.
Level flat_level(Pattern pattern, int nranks);

}  // namespace ccom
