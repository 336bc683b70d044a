// SPDX-License-Identifier: Apache-2.0
//
// Judges what is seen: which ranks are late, who waits for whom in a cycle, who has made the others wait, and what has
// failed. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/jobs/seen.h"

namespace ccom {

struct Health {
  // Also the exit codes of programs.
  enum class Verdict : int {
    Healthy = 0,
    Late = 1,     // ranks are, or wait for one another in a cycle
    Failed = 2,   // a communicator has an error, or a rank has died
    Nothing = 4,  // no communicator was found
  };
  // Others wait for it now, or its process does not run.
  struct LateRank {
    uint64_t communicator = 0;
    Rank rank = -1;
    double seconds = 0;           // the longest wait for it, or how long its process has not run
    std::vector<Rank> waiting{};  // for it, ascending
    std::string reason{};         // a sentence without "rank N"
  };
  // As report_waits() judges (observe/straggler_report.h), of what the ranks of this host say, and for
  // whom those of others wait now.
  struct Straggler {
    uint64_t communicator = 0;
    Rank rank = -1;
    double seconds = 0;  // of that rank which has waited longest for it
    double share = 0;    // of the communicator's life
    bool passed_on = false;
  };
  // A connection that had data on its way for much of its ranks' time, while others were waited for: the network may be
  // slow, and not a rank.
  struct BusyLink {
    int32_t pid = 0;
    std::vector<Rank> ranks{};  // that send
    std::string local{}, remote{};
    double share = 0;             // of their time
    double bytes_per_second = 0;  // while it sent
  };
  struct Place {
    uint64_t communicator = 0;
    Rank rank = -1;
    friend bool operator==(const Place&, const Place&) = default;
  };
  // Each waits in that communicator for the process of the next one, the last for the first.
  using Cycle = std::vector<Place>;

  Verdict verdict = Verdict::Nothing;
  std::vector<LateRank> late{};         // the longest first
  std::vector<Straggler> stragglers{};  // those that passed nothing on, the greatest share, first
  std::vector<BusyLink> busy_links{};   // the greatest share first
  std::vector<Cycle> cycles{};
  std::vector<Place> dead{};
};

// late_seconds: shorter waits are no matter.
Health judge(const HostSeen& seen, double late_seconds);

const char* name_of(Health::Verdict verdict);

}  // namespace ccom
