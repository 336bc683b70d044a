// SPDX-License-Identifier: Apache-2.0
#include "plan/turned.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/checks.h"

namespace ccom {
namespace {

uint32_t blocks_of(const Plan& plan) { return std::max(plan.input_blocks(), plan.output_blocks()); }

bool is_of_one_form(const Plan& a, const Plan& b) {
  const auto form = [](const Plan& p) {
    return std::tuple(p.collective, p.nranks, p.root, p.in_place, p.blocks_per_unit, p.input_units, p.output_units,
                      p.scratch_slots, p.steps.size());
  };
  return form(a) == form(b);
}

// Scratch is each rank's own: its slots may have other names, but one name each.
class Renaming {
 public:
  explicit Renaming(uint32_t slots) : there_(slots, kNone), here_(slots, kNone) {}
  bool bind(uint32_t zero, uint32_t other, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t& there = there_[zero + i];
      uint32_t& here = here_[other + i];
      if (there == kNone && here == kNone) {
        there = other + i;
        here = zero + i;
      }
      if (there != other + i || here != zero + i) return false;
    }
    return true;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> there_, here_;
};

// Whether `step` of rank r's plan is rank 0's step `zero`.
bool is_turned(const Plan& plan, Step zero, Step step, Renaming& slots) {
  const uint32_t blocks = blocks_of(plan);
  const uint32_t by = blocks / static_cast<uint32_t>(plan.nranks) * static_cast<uint32_t>(plan.rank);
  const auto turn = [&](Buffer buffer, uint32_t& first, uint32_t& other, uint32_t count) {
    if (buffer == Buffer::Scratch) return slots.bind(first, std::exchange(other, first), count);
    const uint32_t size = buffer == Buffer::Input ? plan.input_blocks() : plan.output_blocks();
    if (size == blocks) first = (first + by) % blocks;
    return true;
  };
  if (step.kind != zero.kind || step.source_buffer != zero.source_buffer || step.target_buffer != zero.target_buffer ||
      step.source_count() != zero.source_count()) {
    return false;
  }
  if (zero.reads_source() && !turn(zero.source_buffer, zero.source, step.source, zero.source_count())) return false;
  if (zero.writes_target() && !turn(zero.target_buffer, zero.target, step.target, zero.count)) return false;
  if (zero.is_transfer()) zero.peer = (zero.peer + plan.rank) % plan.nranks;
  zero.block = (zero.block + by) % blocks;
  return zero == step;
}

}  // namespace

bool can_turn(const Plan& zero) {
  const bool is_known = zero.collective == Collective::AllReduce || zero.collective == Collective::ReduceScatter ||
                        zero.collective == Collective::AllGather || zero.collective == Collective::Barrier;
  const uint32_t blocks = blocks_of(zero);
  return is_known && zero.rank == 0 && blocks > 0 && blocks % static_cast<uint32_t>(zero.nranks) == 0;
}

Status check_turned(const Plan& zero, const Plan& plan, Rank r) {
  if (plan.rank != r || !is_of_one_form(zero, plan)) {
    return defect(plan, plan.steps.size(), "it is of another form than rank 0's");
  }
  CCOM_TRY(check_steps(plan));
  Renaming slots(plan.scratch_slots);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    if (!is_turned(plan, zero.steps[s], plan.steps[s], slots)) {
      return defect(plan, s, "it is not rank 0's step, turned");
    }
  }
  return {};
}

}  // namespace ccom
