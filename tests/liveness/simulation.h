// SPDX-License-Identifier: Apache-2.0
//
// One random history of a job under faults, in virtual time, on the production state machines.
#pragma once

#include <cstdint>
#include <string>

namespace ccom {

struct History {
  std::string events;
  std::string broken;  // the first promise that did not hold, or empty
};
History simulate(uint64_t seed);

}  // namespace ccom
