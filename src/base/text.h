// SPDX-License-Identifier: Apache-2.0
//
// Text fragments used in several places.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace ccom {

// "rank 3", "ranks 1, 4-7 and 12". Expects ascending ranks; runs of three or more are abbreviated.
std::string name_ranks(const std::vector<Rank>& ranks);

}  // namespace ccom
