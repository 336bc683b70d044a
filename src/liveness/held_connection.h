// SPDX-License-Identifier: Apache-2.0
//
// A control connection as a rank tells others of it.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace ccom {

struct HeldConnection {
  Rank peer = -1;  // in the family (control_family.h)
  uint64_t number = 0;
  friend bool operator==(const HeldConnection&, const HeldConnection&) = default;
};

}  // namespace ccom
