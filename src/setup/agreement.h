// SPDX-License-Identifier: Apache-2.0
//
// The first exchange of a communicator's start-up: settings are compared, machines described, and one topology agreed
// on.
#pragma once

#include "base/status.h"
#include "base/time.h"
#include "bootstrap/rendezvous.h"
#include "setup/config.h"
#include "setup/membership.h"
#include "topology/topology.h"

namespace ccom {

struct Agreement {
  Topology topology;
  std::string plans;      // contents of the plan file; empty: none
  LearnedWays ways;       // from the tuning file; none if ranks have read different ones
  Membership membership;  // with number and secret of this communicator alone: an id made from a url may be used again
};

// Collective. ConfigError names the rank and the setting that differs.
Result<Agreement> agree(const Membership& membership, const CommConfig& config, Rendezvous& rendezvous,
                        Deadline deadline);

}  // namespace ccom
