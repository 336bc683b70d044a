// SPDX-License-Identifier: Apache-2.0
//
// The signatures of all kernels, whatever the instruction set.
#pragma once

#include "base/types.h"
#include "kernels/random.h"

#include <cstddef>
#include <cstdint>

namespace ccom {

// Bytes [begin, end) of every input and of every output, whole elements.
struct KernelCall {
  const std::byte* const* inputs;
  std::byte* const* outputs;
  size_t input_count;
  size_t output_count;
  size_t streamed;  // so many of the first outputs
  size_t begin_bytes;
  size_t end_bytes;
  double divisor;  // for averages of floating types
  // Stochastic rounding only: the stream of random bits, and the index in it of the element at byte 0. No call goes
  // beyond index 2^32 - 1.
  RandomKey key;
  uint32_t first_element;
};

using Kernel = void (*)(const KernelCall&);

// For a few elements and one output: everything in registers. No stochastic rounding.
using SmallKernel = void (*)(const std::byte* const* inputs, size_t input_count, std::byte* output, size_t size_bytes,
                             double divisor);

struct Kernels {
  Kernel any = nullptr;
  SmallKernel small = nullptr;  // null for stochastic rounding
};

}  // namespace ccom
