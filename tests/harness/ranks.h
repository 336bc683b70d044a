// SPDX-License-Identifier: Apache-2.0
//
// Lists of ranks.
#pragma once

#include <algorithm>
#include <vector>

namespace ccom {

// 0, 1, ...; all but some of them.
inline std::vector<int> first_ranks(int ranks, const std::vector<int>& but = {}) {
  std::vector<int> all;
  for (int rank = 0; rank < ranks; ++rank) {
    if (std::ranges::find(but, rank) == but.end()) all.push_back(rank);
  }
  return all;
}

}  // namespace ccom
