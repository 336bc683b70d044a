// SPDX-License-Identifier: Apache-2.0
//
// How a step of messages combines the parts that have come.
#pragma once

#include <span>

#include "engine/engine.h"
#include "kernels/kernels.h"

namespace ccom {

Reduction reduction_of(const Operation& operation, const BoundStep& step);

// Elements of what a step combines; inputs and output begin at the first of them.
struct StepElements {
  size_t begin, count;
};
void combine(const Operation& operation, const BoundStep& step, std::span<const std::byte* const> inputs,
             std::byte* output, const StepElements& elements);

}  // namespace ccom
