// SPDX-License-Identifier: Apache-2.0
//
// Pieces of sentences that several rooms need.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace ccom {

// "rank 3", "ranks 1, 4-7 and 12". Ascending ranks; runs of three or more are shortened.
std::string name_ranks(const std::vector<Rank>& ranks);

}  // namespace ccom
