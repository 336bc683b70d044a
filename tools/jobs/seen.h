// SPDX-License-Identifier: Apache-2.0
//
// What is seen of the jobs of a user on a host: values, made by look.h, judged by health.h, printed by the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"
#include "observe/call_counters.h"
#include "observe/rank_activity.h"

namespace ccom {

struct RankSeen {
  std::string host;  // its name in the job; "": unknown
  RankActivity activity;
  CallTotals totals;        // none of a rank of another host
  double told_before = -1;  // of a rank of another host: so many seconds ago its host's report came; -1: of this host

  bool is_here() const { return told_before < 0; }

  uint64_t calls() const;
  uint64_t bytes() const;
  double seconds() const;  // in calls, the current one too
  double waited() const;   // of these
};

struct CommunicatorSeen {
  uint64_t number = 0, parent = 0;  // parent 0: it is no part of another one
  std::string name;                 // "": it has none
  int ranks = 0, hosts = 0;
  double age = 0;                // seconds since the rank that was first began it
  std::vector<RankSeen> seen{};  // ascending; those of this host, and those of others of which these have told
  std::vector<Rank> unknown{};   // ascending; of hosts that have not answered
  std::string error{};           // in force; "": none
  std::vector<Rank> failed{};    // ranks that the error names

  const RankSeen* find(Rank rank) const;  // null: it is not seen
  double told_before() const;             // of the ranks of other hosts, the longest; -1: none is seen
};

// The connections of a process to one address.
struct LinkSeen {
  int32_t pid = 0;
  std::vector<Rank> ranks{};  // of the process, in the communicator that is nobody's part
  std::string local, remote;  // addresses, without ports
  int connections = 0;
  uint64_t sent = 0, received = 0;  // bytes, acknowledged
  uint64_t retransmits = 0;         // segments
  double rtt = 0;                   // seconds, the longest
  // Seconds in which data was on its way in the one of them that was busiest, and its receiver had room for more: the
  // network took so long, not who should have received it.
  double sending = 0;
};

struct HostSeen {
  int64_t at_ns = 0;                              // CLOCK_MONOTONIC
  std::vector<CommunicatorSeen> communicators{};  // by number of ranks, greatest first; parts behind their wholes
  std::vector<LinkSeen> links{};                  // by process
  uint64_t unlisted = 0;                          // communicators for which directories had no place
  int other_versions = 0;                         // processes of another version of ccom, of which nothing is known
};

}  // namespace ccom
