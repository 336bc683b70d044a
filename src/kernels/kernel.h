// SPDX-License-Identifier: Apache-2.0
//
// The one signature of all kernels, whatever the instruction set.
#pragma once

#include "base/types.h"

#include <cstddef>
#include <span>

namespace ccom {

// Bytes [begin, end) of every input and of the output, whole elements.
struct KernelCall {
  std::span<const std::byte* const> inputs;
  std::byte* output;
  size_t begin_bytes;
  size_t end_bytes;
  double divisor;  // for averages of floating types
};

using Kernel = void (*)(const KernelCall&);

}  // namespace ccom
