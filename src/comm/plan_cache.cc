// SPDX-License-Identifier: Apache-2.0
#include "comm/plan_cache.h"

#include <algorithm>
#include <bit>

#include "algorithms/stage_plans.h"

namespace ccom {
namespace {

size_t slot_of(const PlanKey& key, size_t slots) {
  uint64_t hash = key.unit_elements * 0x9e3779b97f4a7c15U;
  hash ^= static_cast<uint64_t>(key.collective) << 40 ^ static_cast<uint64_t>(key.type) << 34 ^
          static_cast<uint64_t>(key.op) << 28 ^ static_cast<uint64_t>(key.in_place) << 26 ^
          static_cast<uint64_t>(key.sends) << 25 ^ static_cast<uint64_t>(static_cast<uint32_t>(key.root)) << 10 ^
          static_cast<uint64_t>(static_cast<uint32_t>(key.peer)) ^ key.unit_stride << 7;
  return (hash * 0xff51afd7ed558ccdU >> 40) % slots;
}

}  // namespace

Question PlanCache::question(const PlanKey& key) const {
  const size_t bytes = key.unit_stride * size_of(key.type) * largest_units(key.collective, nranks_);
  return {key.collective,
          bytes == 0 ? 0 : std::bit_ceil(bytes),
          reduces(key.collective) && is_narrow_float(key.type),
          key.root};
}

Result<std::shared_ptr<const Choice>> PlanCache::choice(const PlanKey& key) {
  const Question asked = question(key);
  auto& cached = choices_[{asked.collective, asked.narrow_float, asked.root, asked.bytes}];
  if (cached == nullptr) {
    CCOM_TRY_ASSIGN(Choice made, choose(topology_, settings_, asked));
    cached = std::make_shared<const Choice>(std::move(made));
  }
  return cached;
}

// What calls take that comm/hierarchy does not serve.
Result<std::shared_ptr<const Choice>> PlanCache::choice_of_messages(const PlanKey& key) {
  CCOM_TRY_ASSIGN(std::shared_ptr<const Choice> chosen, choice(key));
  if (chosen->program().is_messages()) return chosen;
  const Question asked = question(key);
  auto& cached = choices_of_messages_[{asked.collective, asked.narrow_float, asked.root, asked.bytes}];
  if (cached == nullptr) {
    Settings settings = settings_;
    settings.shared_memory = false;
    CCOM_TRY_ASSIGN(Choice made, choose(topology_, settings, asked));
    cached = std::make_shared<const Choice>(std::move(made));
  }
  return cached;
}

Result<std::shared_ptr<const CompiledPlan>> PlanCache::compiled(const PlanKey& key) {
  if (key.collective == Collective::SendReceive) {
    auto& cached = compiled_[{key.collective, key.sends, false, -1, key.peer, -1}];
    if (cached == nullptr) {
      cached = std::make_shared<const CompiledPlan>(key.sends ? send_plan(rank_, nranks_, key.peer)
                                                              : receive_plan(rank_, nranks_, key.peer));
    }
    return cached;
  }
  CCOM_TRY_ASSIGN(const std::shared_ptr<const Choice> chosen, choice_of_messages(key));
  const Program& program = chosen->program();
  if (compiled_.size() > kMostCompiled) {
    compiled_.clear();
    programs_.clear();
  }
  const auto known = std::ranges::find(programs_, program);
  const auto index = static_cast<int>(known - programs_.begin());
  if (known == programs_.end()) programs_.push_back(program);
  auto& cached = compiled_[{key.collective, key.sends, key.in_place, key.root, -1, index}];
  if (cached == nullptr) {
    cached = std::make_shared<const CompiledPlan>(
        message_plan(program.stages[0].messages, {key.collective, rank_, nranks_, key.root, key.in_place}));
  }
  return cached;
}

size_t PlanCache::tile(const PlanKey& key) {
  // Without a choice there is nothing to tile; get() returns the error.
  const Result<std::shared_ptr<const Choice>> chosen = choice_of_messages(key);
  if (!chosen) return SIZE_MAX;
  const size_t tile_bytes = (*chosen)->program().tile_bytes;
  return tile_bytes == 0 ? SIZE_MAX : tile_bytes / size_of(key.type);
}

Result<std::shared_ptr<const BoundPlan>> PlanCache::get(const PlanKey& key) {
  Slot& slot = slots_[slot_of(key, kSlots)];
  if (slot.plan != nullptr && slot.key == key) return slot.plan;
  CCOM_TRY_ASSIGN(std::shared_ptr<const CompiledPlan> plan, compiled(key));
  const Binding binding{key.type, key.op, key.unit_elements,
                        units_in_row(Memory::Input, plan->plan.input_units, key.unit_stride),
                        units_in_row(Memory::Output, plan->plan.output_units, key.unit_stride)};
  CCOM_TRY_ASSIGN(BoundPlan bound, bind(std::move(plan), binding, channels_));
  slot = {key, std::make_shared<const BoundPlan>(std::move(bound))};
  return slot.plan;
}

}  // namespace ccom
