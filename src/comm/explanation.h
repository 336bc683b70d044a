// SPDX-License-Identifier: Apache-2.0
//
// What would be done in a call, and why, as JSON (planner/account.h).
#pragma once

#include <string>

#include "comm/request.h"
#include "planner/planner.h"
#include "topology/topology.h"

namespace ccom {

// Of a choice on a topology that ranks are on: with details where a fabric is imposed. more: fields to add, each after
// a comma.
std::string explanation(const Topology& topology, const Question& question, const Choice& choice,
                        const std::string& more);

// Of a call on a machine that need not exist, by what `request` says of collective, count, type and root. ConfigError
// for a fabric that is in parts; NotSupported where no algorithm can run.
Result<std::string> explain_offline(const Topology& topology, const Request& request);

}  // namespace ccom
