// SPDX-License-Identifier: Apache-2.0
//
// What the smallest calls take between threads of this process, which are ranks of a communicator of their own.
#pragma once

#include <vector>

#include "bench/launch/outcome.h"

namespace ccom::bench {

// Nanoseconds of a call, back to back.
struct SmallCalls {
  double barrier = 0;
  double allreduce = 0;  // of 8 bytes
};

// Ranks on these cores alone; as many as cores have one each.
launch::Outcome time_small_calls(int ranks, const std::vector<int>& cores, SmallCalls* times);

}  // namespace ccom::bench
