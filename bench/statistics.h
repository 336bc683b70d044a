// SPDX-License-Identifier: Apache-2.0
//
// Statistics of a row from its samples.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "bench/names.h"

namespace ccom::bench {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Of the samples in ascending order; 0 <= fraction <= 1, linear between neighbours. 0 for no samples.
double percentile(const std::vector<double>& sorted, double fraction);

// Microseconds per call.
struct Times {
  size_t samples = 0;
  double min = 0;
  double p50 = 0;
  double p95 = 0;
  std::optional<double> p99;  // Only from 100 samples.
  double max = 0;
  double mean = 0;
};
Times summarise(std::vector<double> seconds);

// The time saved by overlapping a call with computation, as a share of the maximum: 1 if the shorter of the two is
// free, 0 if nothing is saved, below 0 if they slow each other down. All three times must be above 0.
double hidden_share(double comm, double compute, double both);

// busbw / algbw: makes the rate comparable with a link's, independent of the number of ranks (nccl-tests).
double busbw_factor(Collective collective, int ranks);
// GB/s, 1 GB = 1e9 bytes; 0 for no time.
double algbw(size_t size_bytes, double microseconds);

}  // namespace ccom::bench
