// SPDX-License-Identifier: Apache-2.0
//
// What the smallest call takes between threads of this process, which are ranks of a communicator of their own.
#pragma once

#include <vector>

#include "bench/launch/outcome.h"

namespace ccom::bench {

// Nanoseconds of an allreduce of 8 bytes, back to back; ranks take the cores in turn.
launch::Outcome time_small_allreduce(int ranks, const std::vector<int>& cores, double* ns);

}  // namespace ccom::bench
