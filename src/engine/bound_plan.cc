// SPDX-License-Identifier: Apache-2.0
#include "engine/bound_plan.h"

namespace ccom {

Result<BoundPlan> bind(std::shared_ptr<const CompiledPlan> compiled, const Binding& binding, ChannelSource& channels) {
  const Plan& plan = compiled->plan;
  const size_t element_bytes = size_of(binding.type);
  const Partition partition(binding.unit_elements, binding.unit_stride, plan.blocks_per_unit, element_bytes);
  const auto offset = [&](Buffer buffer, uint32_t index) {
    return (buffer == Buffer::Scratch ? partition.slot_offset(index) : partition.offset(index)) * element_bytes;
  };
  BoundPlan bound;
  bound.binding = binding;
  bound.scratch_bytes = partition.slot_offset(plan.scratch_slots) * element_bytes;
  bound.steps.reserve(plan.steps.size());
  for (const Step& step : plan.steps) {
    BoundStep out{.kind = step.kind,
                  .source_buffer = step.source_buffer,
                  .target_buffer = step.target_buffer,
                  .completes = step.completes,
                  .inputs = step.inputs,
                  .peer = step.peer};
    out.elements = partition.elements(step.block, step.count);
    out.size_bytes = out.elements * element_bytes;
    if (step.reads_source()) out.source = offset(step.source_buffer, step.source);
    if (step.writes_target()) out.target = offset(step.target_buffer, step.target);
    out.stride = partition.slot_offset(step.count) * element_bytes;
    if (step.is_transfer()) {
      CCOM_TRY_ASSIGN(const ChannelRef ref, channels.open(step.peer, step.channel));
      out.channel = ref.channel;
      out.transport = ref.transport;
      out.peer = ref.rank;
    }
    bound.steps.push_back(out);
  }
  bound.compiled = std::move(compiled);
  return bound;
}

}  // namespace ccom
