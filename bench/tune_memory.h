// SPDX-License-Identifier: Apache-2.0
//
// ccom-bench --tune: what work in memory that ranks of a host share takes on this machine, the "memory_costs" of a
// tuning file.
#pragma once

#include <ccom/ccom.h>

#include <string>
#include <utility>
#include <vector>

#include "bench/launch/session.h"

namespace ccom::bench {

// Of one of a file's objects.
struct CostFigures {
  std::vector<std::pair<std::string, double>> measured;  // Keys of the file, nanoseconds.
  std::vector<std::string> left_out;                     // What was not measured, and why.

  // Left out unless it is above 0 and at most a second.
  void add(const char* key, double ns);
  void leave_out(const char* key);  // What was measured cannot be.
};

// For ranks 0 and 1 of a host: the first one of rank 0, and one beside it; -1: rank 1 has no other.
struct CorePair {
  int first = 0, second = -1;
  int usable = 0;                                  // by rank 0
  std::vector<int> of(launch::Place place) const;  // What the rank is to be pinned to; empty: it stays as it is.
};
// Collective over the ranks of `control`.
launch::Outcome choose_cores(launch::Place place, ccomComm_t control, CorePair* cores);

// Collective over the ranks of `control` and of `comm`, which are the same; ranks 0 and 1 share a host and its memory
// and are pinned, the others wait. Only rank 0 gets figures. Takes a few seconds.
launch::Outcome measure_memory_costs(launch::Place place, ccomComm_t control, ccomComm_t comm, const CorePair& cores,
                                     CostFigures* figures);

}  // namespace ccom::bench
