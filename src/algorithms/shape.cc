// SPDX-License-Identifier: Apache-2.0
#include "algorithms/shape.h"

#include <numeric>

#include "base/assert.h"

namespace ccom {

// Relative rank v = a * radix^j + rest of lower digits hangs below v with its lowest non-zero digit cleared.
Tree knomial_tree(int nranks, Rank root, int radix) {
  CCOM_ASSERT(radix >= 2);
  Tree tree{root, std::vector<Rank>(static_cast<size_t>(nranks), -1), 1};
  for (int64_t v = 1; v < nranks; ++v) {
    int64_t power = 1;
    while (v / power % radix == 0) power *= radix;
    const int64_t above = v - v / power % radix * power;
    tree.parent[static_cast<size_t>((v + root) % nranks)] = static_cast<Rank>((above + root) % nranks);
  }
  return tree;
}

Level flat_level(Pattern pattern, int nranks) {
  Level level{pattern, nranks, 1, 1, {std::vector<Rank>(static_cast<size_t>(nranks))}};
  std::iota(level.groups[0].begin(), level.groups[0].end(), 0);
  return level;
}

}  // namespace ccom
