// SPDX-License-Identifier: Apache-2.0
//
// The first exchange of a communicator's start-up: settings are compared, machines described, and one topology agreed on.
#pragma once

#include "comm/links.h"

namespace ccom {

// Collective. ConfigError names the rank and the setting that differs.
Result<Topology> agree_on_topology(const Membership& membership, const CommConfig& config, Rendezvous& rendezvous,
                                   Deadline deadline);

}  // namespace ccom
