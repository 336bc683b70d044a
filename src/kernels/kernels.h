// SPDX-License-Identifier: Apache-2.0
//
// Elementwise reductions over every type and operator: the only code in ccom that knows what an element is.
//
// Same bits everywhere: the result does not depend on the instruction set, on alignment, on how a vector is cut into
// calls, or (for two inputs) on their order. 16- and 8-bit floating types are widened to float, combined in input
// order, divided, and rounded once to nearest even; no conversion flushes subnormals. A NaN in any input gives a NaN,
// also for max and min; max(+0, -0) is +0 and min(+0, -0) is -0 in either order. Whatever the payloads of the NaNs that
// went in, the NaN that comes out is the positive quiet one, 0x7fc00000 for float32, except where a single input is
// merely copied; an E4M3FN overflow, also a NaN, keeps its sign. Complex products are (ac - bd) + (ad + bc)i without
// recovery of infinities. Integers wrap. The calling thread must round to nearest; if it flushes subnormals, so do the
// sums and products of float32, float64, complex and bfloat16.
#pragma once

#include <span>

#include "base/types.h"

namespace ccom {

// Whether the pair is legal; the table stands at ccomBuiltinOp_t.
bool is_legal(DataType type, ReduceOp op);

struct Reduction {
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  // Avg only: the number of contributions to divide by (a true division, no product with the inverse), applied after
  // the last combination. 0 = this is not the last one, combine only (Avg then equals Sum).
  uint32_t divide_by = 0;
};

// output[i] = inputs[0][i] op inputs[1][i] op ... for `count` elements. One or more inputs; one input copies (and
// divides), but Bool, Land and Lor give 0 or 1 even then. `output` may equal an input exactly; other overlap is not
// allowed. Any alignment.
void reduce(const Reduction& reduction, std::span<const std::byte* const> inputs, std::byte* output, size_t count);

// output[i] = scalar * input[i], rounded to the type. `scalar` points to one element of the type. Output may equal
// input. Not for Bool.
void multiply(DataType type, const std::byte* scalar, const std::byte* input, std::byte* output, size_t count);

// "AVX3" (AVX-512), "AVX2", "SSE4", "NEON", "SCALAR": the instruction set in use, in Highway's words.
const char* kernel_target();

}  // namespace ccom
