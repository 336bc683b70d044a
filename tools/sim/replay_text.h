// SPDX-License-Identifier: Apache-2.0
//
// What ccom-sim replay prints.
#pragma once

#include <optional>
#include <string>

#include "tools/sim/replay.h"

namespace ccom::simtool {

struct ReplayReport {
  std::string what;  // the machine
  Replay replay;
  Replayed replayed, without_stragglers;
  std::optional<CostFit> fit = {};

  // Of a rank on average, what remains of calls if everything between them ran beside them, and if nothing did.
  double least_exposed_ns() const;
  double exposed_ns() const { return replayed.in_calls_ns; }
};
std::string to_text(const ReplayReport& report);
std::string to_json(const ReplayReport& report);

}  // namespace ccom::simtool
