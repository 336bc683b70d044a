// SPDX-License-Identifier: Apache-2.0
//
// How ranks find each other before they are connected: an all-gather of small strings, nothing else. Exists during
// initialisation only.
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
  // Collective: returns the strings of all ranks, by rank. `phase` names the exchange in errors ("addresses") and must
  // be the same on all ranks. Blocks; the error names the ranks that are missing (Timeout) or that have another phase
  // or number of ranks (ConfigError). At most 1 MiB per string.
  virtual Result<std::vector<std::string>> all_gather(std::string_view phase, std::string mine, Deadline deadline) = 0;
  // Between two all-gathers: whether the next one is known to fail, because a rank was lost or this one is interrupted.
  // For whoever waits for other ranks meanwhile. Does not block; thread-safe; once true it stays so.
  virtual bool has_failed() = 0;
};

}  // namespace ccom
