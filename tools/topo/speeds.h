// SPDX-License-Identifier: Apache-2.0
//
// What this machine's cores and memory take, measured now, as communicators measure it when their ranks meet.
#pragma once

#include <string>
#include <vector>

#include "base/measured_costs.h"

namespace ccom {

// Of two cores: the one stores, the other one loads.
struct CorePairCosts {
  int from = 0, to = 0;
  LineCosts lines{};  // 0: the two could not be measured
};

struct MachineSpeeds {
  OwnCosts own{};
  std::vector<CorePairCosts> pairs;  // from the first core that this process may use to each of the others
};

// Runs threads on all cores that this process may use, one pair after the other; below a millisecond each.
MachineSpeeds measure_speeds(size_t second_cache_bytes);

std::string to_text(const MachineSpeeds& speeds);
std::string to_json(const MachineSpeeds& speeds);

}  // namespace ccom
