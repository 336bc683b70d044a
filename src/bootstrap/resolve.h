// SPDX-License-Identifier: Apache-2.0
//
// Resolves host names to numeric addresses within a deadline.
#pragma once

#include <string>

#include "base/status.h"
#include "base/time.h"

namespace ccom {

// One address of `host`: IPv4 before IPv6, otherwise in the resolver's order, so that ranks agree. Numeric hosts need
// no name server. ConfigError with the resolver's reason, or Timeout.
Result<std::string> resolve_host(const std::string& host, Deadline deadline);

}  // namespace ccom
