// SPDX-License-Identifier: Apache-2.0
//
// Room-private: a rank in the symbolic world of messages.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/checks.h"
#include "plan/executor.h"
#include "plan/symbols.h"

namespace ccom {

// A transfer that has started and waits for its partner.
struct Pending {
  uint32_t step;
  SymbolicBlocks own;  // a receive-reduce's local operand
};

// What one other rank sends on one channel. Either sends or receives wait, never both.
struct Pipe {
  uint64_t key;
  bool holds_sends = false;
  size_t next = 0;  // into waiting
  std::vector<Pending> waiting{};
};

// One rank in the symbolic world.
struct SymbolicRank {
  explicit SymbolicRank(const Plan& p)
      : plan(&p), dependencies(derive_dependencies(p)), executor(dependencies), memory(p) {}
  const Plan* plan;
  Dependencies dependencies;
  Executor executor;
  SymbolicMemory memory;
  std::vector<Pipe> incoming{};  // by key
  std::vector<uint32_t> ready{};
};

// Loads the k-th of a step's source runs.
inline Status load(const SymbolicRank& rank, uint32_t s, uint32_t k, SymbolicBlocks& blocks) {
  const Step& step = rank.plan->steps[s];
  const uint32_t unit = rank.plan->blocks_per_unit;
  rank.memory.load(step.source_buffer, step.source + k * step.count, step.count, blocks);
  for (const Placed& placed : blocks) {  // an item's place in its unit says how long it is
    if (placed.value.origin % unit != (uint64_t{step.block} + placed.offset) % unit) {
      return defect(*rank.plan, s, "it takes a block for one of another length");
    }
  }
  return {};
}

}  // namespace ccom
