// SPDX-License-Identifier: Apache-2.0
#include "engine/bound_plan.h"

#include <numeric>

#include "base/assert.h"
#include "plan/partition.h"

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
        partition_(binding.unit_elements, plan.blocks_per_unit, element_bytes_) {}

  size_t within_unit(const Step& step) const {
    return plan_.has_unequal_units ? 0 : partition_.within_unit(step.block);
  }
  size_t slot_bytes(uint64_t slots) const { return partition_.slot_offset(slots) * element_bytes_; }
  // Where units differ, they are single blocks.
  Result<size_t> elements(const Step& step) const {
    const std::vector<size_t>& units = lengths(step.kind == StepKind::Send ? Buffer::Input : Buffer::Output);
    if (units.empty()) return partition_.elements(step.block, step.count);
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

 private:
  const std::vector<size_t>& lengths(Buffer buffer) const {
    return buffer == Buffer::Input ? binding_.input_elements : binding_.output_elements;
  }

  const Plan& plan_;
  const Binding& binding_;
  const size_t element_bytes_;
  const Partition partition_;
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
                  .steps = {}};
  bound.steps.reserve(plan.steps.size());
  for (const Step& step : plan.steps) {
    BoundStep out{.kind = step.kind, .completes = step.completes, .inputs = step.inputs, .peer = step.peer};
    CCOM_TRY_ASSIGN(out.elements, locator.elements(step));
    out.size_bytes = out.elements * size_of(binding.type);
    out.stride = locator.slot_bytes(step.count);
    out.unit = step.block / plan.blocks_per_unit;
    out.within = locator.within_unit(step);
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
