// SPDX-License-Identifier: Apache-2.0
//
// Text fragments used in several places, and what texts are compared by.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace ccom {

// "rank 3", "ranks 1, 4-7 and 12". Expects ascending ranks; runs of three or more are abbreviated.
std::string name_ranks(const std::vector<Rank>& ranks);

// FNV-1a: equal texts have equal hashes on every machine.
uint64_t hash_of_text(std::string_view text);

}  // namespace ccom
