// SPDX-License-Identifier: Apache-2.0
#include "engine/bound_plan.h"

#include <numeric>

#include "base/assert.h"
#include "plan/layout.h"

namespace ccom {

std::vector<UnitAt> units_in_row(Memory memory, size_t units, size_t stride) {
  std::vector<UnitAt> row;
  row.reserve(units);
  for (size_t unit = 0; unit < units; ++unit) row.push_back({memory, unit * stride});
  return row;
}

namespace {

// From runs of blocks or slots to bytes.
class Locator {
 public:
  Locator(const Plan& plan, const Binding& binding)
      : plan_(plan),
        binding_(binding),
        element_bytes_(size_of(binding.type)),
        partition_(binding.unit_elements, plan.blocks_per_unit, element_bytes_),
        layout_(plan, partition_) {}

  size_t within_unit(const Step& step) const {
    return plan_.has_unequal_units ? 0 : partition_.within_unit(plan_.within_unit(step.block));
  }
  // Of the unit that a step's first block belongs to, or position.
  uint32_t unit(const Step& step) const {
    return (plan_.order.empty() ? step.block : plan_.order[step.block]) / plan_.blocks_per_unit;
  }
  size_t slot_bytes(uint32_t slot) const { return layout_.slot_offset(slot) * element_bytes_; }
  // Of a Reduce: from one of its inputs to the next.
  size_t stride_bytes(const Step& step) const {
    return step.kind == StepKind::Reduce ? slot_bytes(step.source + step.count) - slot_bytes(step.source) : 0;
  }
  // Where units differ, they are single blocks.
  Result<size_t> elements(const Step& step) const {
    const std::vector<size_t>& units = lengths(step.kind == StepKind::Send ? Buffer::Input : Buffer::Output);
    if (units.empty()) return layout_.elements(step.block, step.count);
    const bool is_one = step.count == 1 || plan_.has_unequal_units;
    if (plan_.blocks_per_unit == 1 && is_one && size_t{step.block} + step.count <= units.size())
      return std::accumulate(units.begin() + step.block, units.begin() + step.block + step.count, size_t{0});
    return error(Code::InternalError, "%s: a step of rank %d moves %u blocks from %u on, of %zu units that differ",
                 plan_.algorithm.c_str(), plan_.rank, step.count, step.block, units.size());
  }

  struct Found {
    Memory memory;
    size_t offset_bytes;
  };
  Result<Found> find(Buffer buffer, uint32_t block, uint32_t count) const {
    if (buffer == Buffer::Scratch) return Found{Memory::Scratch, slot_bytes(block)};
    const std::vector<UnitAt>& units = buffer == Buffer::Input ? binding_.input : binding_.output;
    const size_t first = block / plan_.blocks_per_unit;
    const size_t last = count == 0 ? first : (block + count - 1) / plan_.blocks_per_unit;
    if (last >= units.size()) {
      return error(Code::InternalError, "%s: a step of rank %d touches unit %zu, but %zu are bound",
                   plan_.algorithm.c_str(), plan_.rank, last, units.size());
    }
    for (size_t unit = first; unit < last; ++unit) {
      const size_t length = plan_.has_unequal_units ? lengths(buffer)[unit] : binding_.unit_elements;
      if (units[unit + 1].memory == units[unit].memory && units[unit + 1].offset == units[unit].offset + length)
        continue;
      return error(Code::InternalError, "%s: a step of rank %d covers units %zu and %zu, which lie apart",
                   plan_.algorithm.c_str(), plan_.rank, unit, unit + 1);
    }
    const size_t within = plan_.has_unequal_units ? 0 : partition_.within_unit(block);
    return Found{units[first].memory, (units[first].offset + within) * element_bytes_};
  }

  // What a permutation moves, as few runs as there are.
  Status add_moves(const Step& step, std::vector<BoundMove>& moves) const {
    const NumberList& permutation = plan_.permutations[step.inputs];
    const bool is_target_scratch = step.target_buffer == Buffer::Scratch;
    const size_t first = moves.size();
    for (uint32_t i = 0; i < step.count; ++i) {
      CCOM_TRY_ASSIGN(const Found from, find(step.source_buffer, step.source + permutation[i], 1));
      CCOM_TRY_ASSIGN(const Found to, find(step.target_buffer, step.target + i, 1));
      const uint32_t position = step.block + (is_target_scratch ? i : permutation[i]);
      const size_t bytes = layout_.elements(position, 1) * element_bytes_;
      if (bytes == 0) continue;
      BoundMove* const last = moves.size() > first ? &moves.back() : nullptr;
      if (last != nullptr && last->source_memory == from.memory && last->target_memory == to.memory &&
          last->source + last->size_bytes == from.offset_bytes && last->target + last->size_bytes == to.offset_bytes) {
        last->size_bytes += bytes;
      } else {
        moves.push_back({from.memory, to.memory, from.offset_bytes, to.offset_bytes, bytes});
      }
    }
    return {};
  }

 private:
  const std::vector<size_t>& lengths(Buffer buffer) const {
    return buffer == Buffer::Input ? binding_.input_elements : binding_.output_elements;
  }

  const Plan& plan_;
  const Binding& binding_;
  const size_t element_bytes_;
  const Partition partition_;
  const BlockLayout layout_;
};

}  // namespace

Result<BoundPlan> bind(std::shared_ptr<const CompiledPlan> compiled, const Binding& binding, ChannelSource& channels) {
  const Plan& plan = compiled->plan;
  if (plan.has_unequal_units && (binding.input_elements.size() != binding.input.size() ||
                                 binding.output_elements.size() != binding.output.size())) {
    return error(Code::InternalError, "%s: units of rank %d are of unequal length, but not all lengths are bound",
                 plan.algorithm.c_str(), plan.rank);
  }
  const Locator locator(plan, binding);
  BoundPlan bound{.compiled = nullptr,
                  .type = binding.type,
                  .op = binding.op,
                  .scratch_bytes = locator.slot_bytes(plan.scratch_slots),
                  .unit_elements = binding.unit_elements,
                  .firsts = binding.firsts,
                  .steps = {},
                  .moves = {}};
  bound.steps.reserve(plan.steps.size());
  for (const Step& step : plan.steps) {
    BoundStep out{.kind = step.kind, .completes = step.completes, .inputs = step.inputs, .peer = step.peer};
    CCOM_TRY_ASSIGN(out.elements, locator.elements(step));
    out.size_bytes = out.elements * size_of(binding.type);
    out.stride = locator.stride_bytes(step);
    out.unit = locator.unit(step);
    out.within = locator.within_unit(step);
    if (step.kind == StepKind::Permute) {
      out.first_move = bound.moves.size();
      CCOM_TRY(locator.add_moves(step, bound.moves));
      out.moves = bound.moves.size() - out.first_move;
      bound.steps.push_back(out);
      continue;
    }
    if (step.reads_source()) {
      CCOM_TRY_ASSIGN(const Locator::Found found, locator.find(step.source_buffer, step.source, step.count));
      out.source_memory = found.memory;
      out.source = found.offset_bytes;
    }
    if (step.writes_target()) {
      CCOM_TRY_ASSIGN(const Locator::Found found, locator.find(step.target_buffer, step.target, step.count));
      out.target_memory = found.memory;
      out.target = found.offset_bytes;
    }
    if (step.is_transfer()) {
      CCOM_TRY_ASSIGN(const ChannelRef ref, channels.open(step.peer, step.channel));
      out.channel = ref.channel;
      out.transport = ref.transport;
      out.peer = ref.rank;
      out.peer_first = receives_left_operand(plan, step);
    }
    bound.steps.push_back(out);
  }
  bound.compiled = std::move(compiled);
  return bound;
}

}  // namespace ccom
