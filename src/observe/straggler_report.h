// SPDX-License-Identifier: Apache-2.0
//
// Which ranks made the others wait, how much, and where: pure functions of what ranks say of their own waits.
//
// A rank that waits for another one, and is waited for meanwhile, passes a delay on, as in rings and trees between
// hosts. The counters do not say which waits belong together. So a rank that has waited itself for at least half as
// long as it was waited for is said to have done so.
#pragma once

#include <string>
#include <vector>

#include "observe/rank_waits.h"

namespace ccom {

struct WaitReport {
  static constexpr double kLeastShare = 0.01;  // of the time: less is not told in words
  static constexpr size_t kMost = 8;           // ranks that are told of in words
  // Of one rank. Shares are of the time since the start of whoever waited.
  struct Straggler {
    Rank rank = -1;
    double seconds = 0, share = 0;  // of that rank which waited longest for it
    double share_of_calls = 0;      // of the time of that one in calls, at most 1
    size_t seen_by = 0;             // so many ranks waited for it for kLeastShare or longer
    bool passed_on = false;
    Rank seen_from = -1;   // which rank waited longest
    RankWaits::For where;  // as that one says
  };
  int nranks = 0;
  double seconds = 0;                 // since the start: the longest time of a rank
  std::vector<RankWaits> ranks;       // of which something is known, ascending
  std::vector<Straggler> stragglers;  // that any of them has waited for; those that passed nothing on, the worst, first
};

// nranks: of the communicator.
WaitReport report_waits(std::vector<RankWaits> ranks, int nranks);
// Lines without a newline at the end: "rank 3 made the others wait 18 % of the time (2.20 s of 12.3 s, 85 % of ...".
std::string text_of(const WaitReport& report);
// One object; docs/observing.md lists its fields.
std::string json_of(const WaitReport& report);

}  // namespace ccom
