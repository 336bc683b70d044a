// SPDX-License-Identifier: Apache-2.0
//
// The first exchange of a group of ranks who belong to a communicator already, and start one of their own.
#pragma once

#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "bootstrap/rendezvous.h"
#include "setup/config.h"

namespace ccom {

// Collective. ranks: of the group, as known to the communicator. Returns a number that is equal on all ranks and used
// once. ConfigError names the rank that has other ranks or other settings, and which.
Result<uint64_t> agree_on_group(const std::vector<Rank>& ranks, const CommConfig& config, Rendezvous& rendezvous,
                                Deadline deadline);

}  // namespace ccom
