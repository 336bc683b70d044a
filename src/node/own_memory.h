// SPDX-License-Identifier: Apache-2.0
//
// What a core takes for bytes of its own memory, and the kernel to copy some.
#pragma once

#include <cstddef>

#include "base/measured_costs.h"

namespace ccom {

// Measured once in a process and remembered; is_new: by this call. Thread-safe.
OwnCosts own_costs(size_t second_cache_bytes, bool& is_new);

// Measures them with four times as many bytes as the second cache holds, again until the figures are steady or 5 ms are
// over. A figure is 0 where memory or the kernel does not allow it.
OwnCosts measure_own_costs(size_t second_cache_bytes);

}  // namespace ccom
