// SPDX-License-Identifier: Apache-2.0
//
// Calls of all ranks of a host whose data travel in arrival lines and mail: one that is ready to run but for its
// buffers and its number.
#pragma once

#include <cstddef>

#include "base/collective.h"
#include "kernels/kernels.h"

namespace ccom {

struct SmallCall {
  Collective collective = Collective::Barrier;
  Rank root = -1;  // its index among the ranks of the host
  size_t count = 0, unit_bytes = 0;
  size_t shown_bytes = 0;              // of a rank's memory that others read
  Reducer reducer{};                   // of reductions
  const UserOperator* user = nullptr;  // of the reducer; outlives the call
};

// Borrowed.
struct SmallBuffers {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  bool in_place = false;  // a block that this rank gives and gets lies at one address
};

}  // namespace ccom
