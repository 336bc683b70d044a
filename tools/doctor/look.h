// SPDX-License-Identifier: Apache-2.0
//
// What one rank sees of its own host, without talking to anybody.
#pragma once

#include <string>

#include "tools/doctor/report.h"

namespace ccom::doctor {

// `root`: where sys and proc are found, as for ccom-topo. Bounded by a few seconds. What cannot be seen keeps its
// default.
RankReport look_around(int rank, const std::string& root);

}  // namespace ccom::doctor
