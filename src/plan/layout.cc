// SPDX-License-Identifier: Apache-2.0
#include "plan/layout.h"

namespace ccom {

BlockLayout::BlockLayout(const Plan& plan, const Partition& partition) : plan_(plan), partition_(partition) {
  if (plan.order.empty()) return;
  begins_.reserve(size_t{plan.order.size()} + 1);
  begins_.push_back(0);
  for (uint32_t position = 0; position < plan.order.size(); ++position) {
    begins_.push_back(begins_.back() + partition_.elements(plan.within_unit(position), 1));
  }
  size_t at = 0;
  for (size_t i = 0; i < plan.stretches.size(); ++i) {
    const Stretch& stretch = plan.stretches[i];
    stretch_at_.push_back(at);
    const uint32_t end = i + 1 < plan.stretches.size() ? plan.stretches[i + 1].slot : plan.scratch_slots;
    at += elements(stretch.position, end - stretch.slot);
  }
}

size_t BlockLayout::slot_offset(uint32_t slot) const {
  if (plan_.order.empty()) return partition_.slot_offset(slot);
  if (plan_.stretches.empty()) return 0;
  const auto next = std::ranges::upper_bound(plan_.stretches, slot, {}, &Stretch::slot);
  const auto index = static_cast<size_t>(next - plan_.stretches.begin()) - 1;
  const Stretch& stretch = plan_.stretches[index];
  return stretch_at_[index] + elements(stretch.position, slot - stretch.slot);
}

}  // namespace ccom
