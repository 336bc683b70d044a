// SPDX-License-Identifier: Apache-2.0
//
// Room-private: a rank in the symbolic world of messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/checks.h"
#include "plan/executor.h"
#include "plan/node_plan.h"
#include "plan/symbols.h"
#include "plan/value.h"

namespace ccom {

// A transfer that has started and waits for its partner.
struct Pending {
  uint32_t step;
  SymbolicBlocks own;  // a receive-reduce's local operand
};

// What one other rank sends on one channel. Either sends or receives wait, never both.
struct MessageQueue {
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
  std::vector<MessageQueue> incoming{};  // by key
  std::vector<uint32_t> ready{};
};

// Loads the k-th of a step's source runs.
inline Status load(const SymbolicRank& rank, uint32_t s, uint32_t k, SymbolicBlocks& blocks) {
  const Step& step = rank.plan->steps[s];
  const uint32_t unit = rank.plan->blocks_per_unit;
  rank.memory.load(step.source_buffer, step.source + k * step.count, step.count, blocks);
  const bool is_user_run = step.kind == StepKind::Permute && step.source_buffer != Buffer::Scratch;
  for (const Placed& placed : blocks) {  // an item's place in its unit says how long it is
    const uint64_t within =
        is_user_run ? (step.source + placed.offset) % unit : rank.plan->within_unit(step.block + placed.offset);
    if (placed.value.origin % unit != within) {
      return defect(*rank.plan, s, "it takes a block for one of another length");
    }
  }
  return {};
}

inline Status wrong(const Plan& plan, uint32_t block, const char* what) {
  return defect(plan, plan.steps.size(), ("output block " + std::to_string(block) + " " + what).c_str());
}

// The item that block `b` of a unit is, where units are blocks of a stage.
inline uint64_t item_of(uint32_t unit_block, const Plan& plan, uint32_t b) {
  return uint64_t{unit_block} * plan.blocks_per_unit + b % plan.blocks_per_unit;
}

// What the output's units hold in the end.
inline Result<std::vector<std::optional<Value>>> collect_units(const SymbolicRank& rank, const BlockLists& blocks) {
  const Plan& plan = *rank.plan;
  SymbolicBlocks held;
  if (plan.output_blocks() > 0) rank.memory.load(Buffer::Output, 0, plan.output_blocks(), held);
  std::vector<std::optional<Value>> units;
  for (uint32_t unit = 0; unit < plan.output_units; ++unit) {
    std::vector<Value> values;
    const uint32_t block = blocks.gets[static_cast<size_t>(plan.rank)][unit];
    for (uint32_t b = unit * plan.blocks_per_unit; b < (unit + 1) * plan.blocks_per_unit; ++b) {
      const auto found = std::ranges::lower_bound(held, b, {}, &Placed::offset);
      if (found == held.end() || found->offset != b) return wrong(plan, b, "is never written");
      if (found->value.origin != item_of(block, plan, b)) return wrong(plan, b, "holds other data");
      values.push_back(found->value);
    }
    bool is_whole = true;
    units.emplace_back(whole_of(values, is_whole));
    if (!is_whole) return wrong(plan, unit * plan.blocks_per_unit, "has other contributions than the rest of its unit");
  }
  return units;
}

}  // namespace ccom
