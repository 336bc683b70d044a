// SPDX-License-Identifier: Apache-2.0
#include "comm/program_cache.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/collective.h"
#include "comm/program_proof.h"

namespace ccom {
namespace {

size_t slot_of(const ProgramKey& key, size_t slots) {
  uint64_t hash = key.count;
  for (const size_t length : key.units.lengths) hash = hash * 0xff51afd7ed558ccdU + length;
  hash *= 0x9e3779b97f4a7c15U;
  hash ^= static_cast<uint64_t>(key.collective) << 40 ^ static_cast<uint64_t>(key.type) << 34 ^
          static_cast<uint64_t>(key.op) << 28 ^ static_cast<uint64_t>(key.in_place) << 26 ^
          static_cast<uint64_t>(static_cast<uint32_t>(key.root)) << 10;
  return (hash * 0xff51afd7ed558ccdU >> 40) % slots;
}

bool can_be_narrow(const ProgramKey& key) {
  const bool has_type = key.type == DataType::Float32 || key.type == DataType::Bfloat16;
  return has_type && (key.op == ReduceOp::Sum || key.op == ReduceOp::Avg);
}

}  // namespace

ProgramCache::ProgramCache(Rank rank, const Topology& topology, std::shared_ptr<ProgramChoices> choices,
                           const LineCosts& lines, ProgramRunner& runner, bool proves)
    : rank_(rank), topology_(topology), choices_(std::move(choices)), lines_(lines), runner_(runner), proves_(proves) {}

Question ProgramCache::question(const ProgramKey& key) const {
  const bool is_v = !key.units.lengths.empty();
  const size_t elements = is_v ? std::accumulate(key.units.lengths.begin(), key.units.lengths.end(), size_t{0})
                               : key.count * largest_units(key.collective, topology_.nranks());
  const size_t bytes = elements * size_of(key.type);
  const bool sums = reduces(key.collective);
  SumOrder order = sums && key.op == ReduceOp::UserOrdered ? SumOrder::Ranks : SumOrder::Any;
  const Settings& settings = choices_->settings();
  const bool has_grouping = sums && depends_on_grouping(key.type, key.op);
  const bool is_narrow = sums && is_narrow_float(key.type) && !is_user(key.op);
  const bool rounds_once = is_narrow && has_grouping && settings.rounds_once;
  if (has_grouping) order = std::max(order, settings.order);
  return {.collective = key.collective,
          .bytes = bytes == 0 ? 0 : std::bit_ceil(bytes),
          .narrow_float = is_narrow,
          .root = key.root,
          .order = order,
          .rounds_once = rounds_once,
          .narrow_bytes = rounds_once ? size_of(key.type) : Question().narrow_bytes,
          .is_v = is_v,
          .wire = can_be_narrow(key) ? settings.wire : UnitType::Call};
}

Result<std::shared_ptr<const Choice>> ProgramCache::choice(const ProgramKey& key) {
  CCOM_TRY_ASSIGN(const Chosen* const found, choices_->get(question(key)));
  return found->choice;
}

// Programs of the user's always; ours if asked to, and not again if another size has had the same one.
Status ProgramCache::prove_once(Chosen& chosen, const Question& asked) const {
  const Program& program = chosen.choice->program();
  if (chosen.is_proved) return {};
  if (chosen.choice->is_users) {
    CCOM_TRY(prove_users(program, asked, asked.rounds_once ? 1 : allowed_roundings(topology_)));
  } else if (proves_) {
    const auto is_same = [&](const auto& compiled) { return *compiled->program == program; };
    const bool asks = asked.order != SumOrder::Any || asked.rounds_once || is_block(program.wire());
    if (asks || std::ranges::none_of(compiled_, is_same)) CCOM_TRY(prove(program, asked));
  }
  chosen.is_proved = true;
  return {};
}

Result<std::shared_ptr<const CompiledProgram>> ProgramCache::compiled(const ProgramKey& key) {
  CCOM_TRY_ASSIGN(Chosen* const found, choices_->get(question(key)));
  CCOM_TRY(prove_once(*found, question(key)));
  const std::shared_ptr<const Choice>& choice = found->choice;
  const auto known = std::ranges::find_if(compiled_, [&](const auto& compiled) {
    return compiled->in_place == key.in_place && *compiled->program == choice->program();
  });
  if (known != compiled_.end()) return *known;
  if (compiled_.size() == kMostCompiled) compiled_.clear();
  const WaysOfStage ways = [&](const Stage& stage) {
    std::vector<NodeChoice> all = node_ways(topology_, choice->program(), stage, lines_);
    // Few calls of a v-form are of one length, and what they find out is of no use to others.
    if (!choices_->settings().has_ways || choice->program().is_v) all.resize(1);
    return all;
  };
  CCOM_TRY_ASSIGN(std::shared_ptr<const CompiledProgram> made,
                  compile(std::shared_ptr<const Program>(choice, &choice->program()), rank_, key.in_place,
                          choice->is_users ? WaysOfStage() : ways));
  compiled_.push_back(made);
  return made;
}

Result<const BoundProgram*> ProgramCache::get(const ProgramKey& key) {
  Slot& slot = slots_[slot_of(key, kSlots)];
  if (slot.program != nullptr && slot.key == key) return slot.program.get();
  CCOM_TRY_ASSIGN(std::shared_ptr<const CompiledProgram> program, compiled(key));
  CCOM_TRY_ASSIGN(std::shared_ptr<const BoundProgram> bound,
                  runner_.bind(std::move(program), {key.type, key.op, key.count, key.units}));
  slot = {key, std::move(bound)};
  return slot.program.get();
}

}  // namespace ccom
