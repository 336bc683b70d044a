// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ccom::bench {

double percentile(const std::vector<double>& sorted, double fraction) {
  if (sorted.empty()) return 0;
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(position);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (position - std::floor(position));
}

Times summarise(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  const auto at = [&seconds](double fraction) { return 1e6 * percentile(seconds, fraction); };
  Times times{.samples = seconds.size(), .min = at(0), .p50 = at(0.5), .p95 = at(0.95), .p99 = {}, .max = at(1)};
  if (seconds.size() >= 100) times.p99 = at(0.99);
  if (!seconds.empty())
    times.mean = 1e6 * std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  return times;
}

double hidden_share(double comm, double compute, double both) {
  return std::min(1.0, (comm + compute - both) / std::min(comm, compute));
}

double busbw_factor(Collective collective, int ranks) {
  const double n = ranks;
  switch (plain_of(collective)) {
    case Collective::AllReduce: return 2 * (n - 1) / n;
    case Collective::AllGather:
    case Collective::ReduceScatter:
    case Collective::AllToAll:
    case Collective::Gather:
    case Collective::Scatter: return (n - 1) / n;
    case Collective::Broadcast:
    case Collective::Reduce:
    case Collective::SendRecv: return 1;
    default: return 0;
  }
  return 0;
}

double algbw(size_t size_bytes, double microseconds) {
  return microseconds > 0 ? static_cast<double>(size_bytes) / microseconds / 1e3 : 0;
}

}  // namespace ccom::bench
