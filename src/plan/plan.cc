// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

namespace ccom {

int64_t Plan::output_shift() const {
  const int64_t own = static_cast<int64_t>(rank) * blocks_per_unit;
  switch (collective) {
    case Collective::AllGather:
    case Collective::Barrier:
    case Collective::Gather: return own;
    case Collective::ReduceScatter:
    case Collective::Scatter: return -own;
    default: return 0;
  }
}

}  // namespace ccom
