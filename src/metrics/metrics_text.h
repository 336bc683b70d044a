// SPDX-License-Identifier: Apache-2.0
//
// What ranks did, as text in the OpenMetrics format, version 1.0. Pure.
//
// Counters never fall while a communicator lives, and begin at 0 with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/call_counters.h"
#include "observe/rank_activity.h"

namespace ccom {

// A rank of this process in one of its communicators.
struct RankMetrics {
  uint64_t communicator = 0;
  std::string name;  // of the communicator
  std::string host;
  int ranks = 0, hosts = 0;
  bool has_failed = false;
  RankActivity activity;  // its rank, too
  CallTotals totals;
};

std::string metrics_text(const std::vector<RankMetrics>& ranks);

inline constexpr const char* kMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

}  // namespace ccom
