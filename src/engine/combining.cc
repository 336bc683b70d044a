// SPDX-License-Identifier: Apache-2.0
#include "engine/combining.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "kernels/scaled_blocks.h"

namespace ccom {
namespace {

// Unit by unit: random bits belong to an element's place in the whole vector.
void combine_at_random(const Operation& operation, const BoundStep& step, std::span<const std::byte* const> inputs,
                       std::byte* output, const StepElements& elements) {
  const BoundPlan& plan = *operation.plan;
  const Reducer reducer(reduction_of(operation, step));
  std::vector<const std::byte*> from(inputs.begin(), inputs.end());
  for (size_t done = 0; done < elements.count;) {
    const size_t at = step.within + elements.begin + done;
    const size_t unit = step.unit + at / plan.unit_elements, inside = at % plan.unit_elements;
    CCOM_ASSERT(unit < plan.firsts.size());
    const size_t now = std::min(elements.count - done, plan.unit_elements - inside);
    reducer(from, {&output, 1}, now, 0, operation.first_element + plan.firsts[unit] + inside);
    for (const std::byte*& input : from) input += now * size_of(plan.type);
    output += now * size_of(plan.type);
    done += now;
  }
}

}  // namespace

Reduction reduction_of(const Operation& operation, const BoundStep& step) {
  const bool divides = step.completes && operation.plan->op == ReduceOp::Avg;
  return {operation.plan->type, operation.plan->op, divides ? operation.contributions : 0,
          operation.rounding,   operation.seed,     operation.user};
}

void combine(const Operation& operation, const BoundStep& step, std::span<const std::byte* const> inputs,
             std::byte* output, const StepElements& elements) {
  const DataType type = operation.plan->type;
  const Reduction reduction = reduction_of(operation, step);
  if (!operation.loss.empty()) [[unlikely]] {  // of plans with one unit
    CCOM_ASSERT(step.unit == 0);
    const size_t first = (step.within + elements.begin) * kBlockValues * sizeof(float);
    const size_t bytes = std::min(elements.count * kBlockValues * sizeof(float), operation.loss.size() - first);
    return reduce_with_loss(reduction, inputs, output, operation.loss.data() + first, bytes / sizeof(float));
  }
  const bool is_random = operation.rounding == Rounding::Stochastic && is_narrow_float(type) &&
                         depends_on_grouping(type, operation.plan->op);
  if (!is_random) return reduce(reduction, inputs, output, elements.count);
  combine_at_random(operation, step, inputs, output, elements);
}

}  // namespace ccom
