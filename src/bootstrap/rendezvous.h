// SPDX-License-Identifier: Apache-2.0
//
// How ranks meet before they are connected: an all-gather of small strings, nothing else. Lives during initialisation
// only.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "base/types.h"

namespace ccom {

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // Collective: the strings of all ranks, by rank. `phase` names the exchange in errors ("addresses"); it must be the
  // same on all ranks. Blocking; the error names the ranks that are missing (Timeout) or that came with another phase
  // or another number of ranks (ConfigError). At most 1 MiB per string.
  virtual Result<std::vector<std::string>> all_gather(std::string_view phase, std::string mine, Deadline deadline) = 0;
};

}  // namespace ccom
