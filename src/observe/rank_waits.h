// SPDX-License-Identifier: Apache-2.0
//
// For whom one rank has waited since its communicator started, and where: as values that were read from its record, and
// in a form of fixed size, in which ranks tell it to one another.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/collective.h"
#include "base/types.h"
#include "observe/activity_record.h"
#include "observe/call_counters.h"

namespace ccom {

struct RankWaits {
  struct For {
    Rank rank = -1;
    double seconds = 0;  // at least
    uint64_t waits = 0;
    // Where most of it was waited: there at least so much, in so many waits.
    Collective collective = Collective::AllReduce;
    std::string site;  // "": unknown
    double place_seconds = 0;
    uint64_t place_waits = 0;
    double longest_seconds = 0;
    uint64_t longest_call = 0;  // 0: in sends and receives
    friend bool operator==(const For&, const For&) = default;
  };
  Rank rank = -1;
  double seconds = 0;           // since the start
  double in_calls = 0;          // of these, as far as the calls tell that were timed
  bool is_sampled = false;      // not all of them were
  double waited = 0;            // in waits of about a microsecond or longer
  std::vector<For> waited_for;  // the longest first
  friend bool operator==(const RankWaits&, const RankWaits&) = default;
};

// Without call sites.
RankWaits waits_of(const CallTotals& totals, Rank rank, double seconds);
// What `record` says. Call sites: see read_activity().
RankWaits read_waits(const ActivityRecord& record, Rank rank, double seconds, bool reads_files);

// The first kMost of waited_for; sites lose what is beyond their room.
struct WaitsOnWire {
  static constexpr size_t kMost = 8, kSiteBytes = TextTable::kTextBytes;
  struct For {
    double seconds, place_seconds, longest_seconds;
    uint64_t waits, place_waits, longest_call;
    int32_t rank;
    uint32_t collective;
    std::array<char, kSiteBytes> site;
  };
  double seconds, in_calls, waited;
  int32_t rank;
  uint32_t is_sampled;
  std::array<For, kMost> waited_for;  // rank -1: no more
};
WaitsOnWire to_wire(const RankWaits& waits);
RankWaits from_wire(const WaitsOnWire& told);

}  // namespace ccom
