// SPDX-License-Identifier: Apache-2.0
//
// What a core takes for bytes of its own memory, and the kernel to copy some.
#pragma once

#include <cstddef>

#include "base/measured_costs.h"

namespace ccom {

// Measured once in a process, in a few milliseconds and four times as many bytes as the second cache holds, and
// remembered. Thread-safe. A figure is 0 where memory or the kernel does not allow it.
OwnCosts own_costs(size_t second_cache_bytes);

// Measures them anew.
OwnCosts measure_own_costs(size_t second_cache_bytes);

}  // namespace ccom
