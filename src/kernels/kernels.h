// SPDX-License-Identifier: Apache-2.0
//
// Elementwise reductions over every type and operator: the only code in ccom that knows what an element is.
//
// Same bits everywhere: the result does not depend on the instruction set, on alignment, on how a vector is cut into calls, or
// (for two inputs) on their order, NaN payloads aside. 16- and 8-bit floating types are widened to float, combined in input
// order, scaled, and rounded once to nearest even (integer arithmetic, no hardware conversion that flushes denormals). A NaN in
// any input gives a NaN, also for max and min; max(+0, -0) is +0 and min(+0, -0) is -0 in either order. Integers wrap.
#pragma once

#include <span>

#include "base/types.h"

namespace ccom {

// Whether the pair is legal; the table stands at ccomBuiltinOp_t.
bool is_legal(DataType type, ReduceOp op);

struct Reduction {
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  // Avg only: the number of contributions to divide by, applied after the last combination. 0 = this is not the last
  // one, combine only (Avg then equals Sum).
  uint32_t divide_by = 0;
};

// output[i] = inputs[0][i] op inputs[1][i] op ... for `count` elements. One or more inputs; one input copies (and divides).
// `output` may equal an input exactly; other overlap is not allowed. Any alignment.
void reduce(const Reduction& reduction, std::span<const std::byte* const> inputs, std::byte* output, size_t count);

// output[i] = scalar * input[i], rounded to the type. `scalar` points to one element of the type. Output may equal input.
// Not for Bool.
void multiply(DataType type, const std::byte* scalar, const std::byte* input, std::byte* output, size_t count);

// "AVX3_ZEN4", "AVX2": the instruction set in use.
const char* kernel_target();

}  // namespace ccom
