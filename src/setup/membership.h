// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/secret.h"
#include "base/types.h"

namespace ccom {

// Who this rank is and whom it belongs to. A value.
struct Membership {
  Rank rank = 0;
  int nranks = 1;
  uint64_t communicator = 0;
  Secret secret;
};

}  // namespace ccom
