// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "algorithms/cost.h"
#include "algorithms/streams.h"
#include "base/assert.h"

namespace ccom {
namespace {

double size_of(const Level& level) { return static_cast<double>(level.groups.empty() ? 1 : level.groups[0].size()); }

}  // namespace

Cost level_cost(const Level& level, double n, bool down) {
  const double p = size_of(level);
  switch (level.pattern) {
    case Pattern::Direct: return down ? direct_reduce_scatter_cost(p, n) : direct_allgather_cost(p, n);
    case Pattern::Ring: return down ? ring_reduce_scatter_cost(p, n) : ring_allgather_cost(p, n);
    case Pattern::Circulant: return down ? circulant_reduce_scatter_cost(p, n) : circulant_allgather_cost(p, n);
    case Pattern::Torus: return down ? torus_reduce_scatter_cost(level, n) : torus_allgather_cost(level, n);
    case Pattern::Swing: return down ? swing_reduce_scatter_cost(level, n) : swing_allgather_cost(level, n);
    case Pattern::Rings: return down ? rings_reduce_scatter_cost(level, n) : rings_allgather_cost(level, n);
    case Pattern::OneShot: return one_shot_cost(p, n);
    case Pattern::RecursiveDoubling: return recursive_doubling_cost(level, n);
    case Pattern::SwingLatency: return swing_latency_cost(level, n);
    case Pattern::Bine: return down ? bine_reduce_scatter_cost(p, n) : bine_allgather_cost(p, n);
    case Pattern::BineLatency: return recursive_doubling_cost(p, n);
  }
  CCOM_ASSERT(!"every pattern has a cost");
}

int level_roundings(const Level& level) {
  const double p = size_of(level);
  if (p <= 1) return 0;
  switch (level.pattern) {
    case Pattern::Direct:
    case Pattern::OneShot: return 1;
    case Pattern::Circulant:
    case Pattern::RecursiveDoubling:
    case Pattern::BineLatency:
      if (level.dims.empty()) return std::bit_width(static_cast<unsigned>(p) - 1);
      break;
    case Pattern::Torus: {  // where both ways meet, one more
      const std::vector<TorusStream> streams = streams_of(level);
      const bool meets = std::ranges::find(streams, 0, &TorusStream::direction) != streams.end();
      const auto rings = meets ? std::ranges::count_if(level.dims, [](int size) { return size > 2; }) : 0;
      return static_cast<int>(level_cost(level, 0, true).steps) + static_cast<int>(rings);
    }
    default: break;
  }
  return static_cast<int>(level_cost(level, 0, true).steps);
}

}  // namespace ccom
