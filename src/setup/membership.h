// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/secret.h"
#include "base/types.h"

namespace ccom {

// Who this rank is and whom it belongs to. A value.
struct Membership {
  Rank rank = 0;
  int nranks = 1;
  uint64_t communicator = 0;
  Secret secret;
  std::vector<Rank> parents{};       // the ranks' ranks in the communicator that this one is a part of, if any
  std::vector<uint64_t> used_ids{};  // numbers of those by which its ranks have met one another, or new ones
};

}  // namespace ccom
