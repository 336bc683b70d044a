// SPDX-License-Identifier: Apache-2.0
//
// A rank's memory in the symbolic world: the cells whose values are known, and nothing else.
//
// Following a few of many blocks costs a few entries per rank, however long the vector is.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "plan/collective_spec.h"
#include "plan/dependencies.h"

namespace ccom {

// A value at a place within a run of blocks.
struct Placed {
  uint32_t offset;
  Value value;
};
using SymbolicBlocks =
    std::vector<Placed>;  // by offset; blocks that hold nothing (or nothing that is followed) are left out

class SymbolicMemory {
 public:
  explicit SymbolicMemory(const Plan& plan) : cells_(plan) {}

  void load(Buffer buffer, uint32_t first, uint32_t count, SymbolicBlocks& blocks) const;
  // The run holds the blocks then, and nothing besides.
  void store(Buffer buffer, uint32_t first, uint32_t count, std::span<const Placed> blocks);
  void forget(Buffer buffer, uint32_t first, uint32_t count) { store(buffer, first, count, {}); }

 private:
  void replace(uint32_t cell, uint32_t count, uint32_t offset, std::span<const Placed> blocks);

  Cells cells_;
  std::map<uint32_t, Value> entries_;  // by cell
};

}  // namespace ccom
