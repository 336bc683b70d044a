// SPDX-License-Identifier: Apache-2.0
//
// What one rank finds on its own host, without communication.
#pragma once

#include <string>

#include "tools/doctor/report.h"

namespace ccom::doctor {

// `root`: parent directory of sys and proc, as for ccom-topo. Takes a few seconds at most. Unavailable values keep
// their default.
RankReport inspect_host(int rank, const std::string& root);

}  // namespace ccom::doctor
