// SPDX-License-Identifier: Apache-2.0
//
// From samples to the figures of a row.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "bench/names.h"

namespace ccom::bench {

// Of the samples in ascending order; 0 <= fraction <= 1, linear between neighbours. 0 for no samples.
double percentile(const std::vector<double>& sorted, double fraction);

// Microseconds per call.
struct Times {
  size_t samples = 0;
  double min = 0;
  double p50 = 0;
  double p95 = 0;
  std::optional<double> p99;  // Only from 100 samples on.
  double max = 0;
};
Times summarise(std::vector<double> seconds);

// What computing while a call is under way saves, as a share of the most that it could save: 1 if the shorter one takes
// no time, 0 if nothing is saved, below 0 if each disturbs the other. All three times above 0.
double hidden_share(double comm, double compute, double both);

// busbw / algbw: what makes the rate comparable with that of a link, whatever the number of ranks (nccl-tests).
double busbw_factor(Collective collective, int ranks);
// GB/s, 1 GB = 1e9 bytes; 0 for no time.
double algbw(size_t size_bytes, double microseconds);

}  // namespace ccom::bench
