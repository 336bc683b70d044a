// SPDX-License-Identifier: Apache-2.0
//
// Host names to numeric addresses, bounded in time.
#pragma once

#include <string>

#include "base/status.h"
#include "base/time.h"

namespace ccom {

// One address of `host`: IPv4 before IPv6, the order of the system's resolver otherwise, so that ranks agree. Numeric
// hosts need no name server. A ConfigError with the resolver's reason, or Timeout.
Result<std::string> resolve_host(const std::string& host, Deadline deadline);

}  // namespace ccom
