// SPDX-License-Identifier: Apache-2.0
//
// Who made others wait: of every call in which all ranks meet, the one that came last, how much later than the one
// before it, and from where it came.
#pragma once

#include <string>
#include <vector>

#include "trace/recorded_job.h"

namespace ccom {

struct Straggler {
  struct Place {
    std::string site;  // of the call before which it was late; "": unknown
    uint64_t calls = 0;
    int64_t late_ns = 0;
  };
  uint64_t communicator = 0;
  Rank rank = -1;
  uint64_t calls = 0;         // to which it came last
  int64_t late_ns = 0;        // sum of: later than the next to last, by which all would have been done earlier
  int64_t waited_ns = 0;      // what the other ranks together waited for it
  double share = 0;           // of late_ns in the time that is recorded of the communicator
  std::vector<Place> places;  // where it was the latest first
  bool has_not_come = false;  // to the last call, in which others are
};

// Of this communicator, those with the greatest share first. Lateness that the clocks' error explains does not count.
std::vector<Straggler> find_stragglers(const RecordedJob& job, const RecordedGroup& group);

}  // namespace ccom
