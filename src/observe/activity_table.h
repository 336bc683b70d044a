// SPDX-License-Identifier: Apache-2.0
//
// What ranks of other hosts do, in a form that travels and stays small: merged on its way, and the same bytes on the
// wire and in a board.
//
// Up to kMostSeparate ranks stand each for itself. Of more, those that do the same are one group with the longest of
// their times, whatever the order in which tables were merged. Times are of this host's CLOCK_MONOTONIC; they travel as
// ages, because clocks differ between hosts. What has no room is left out, ranks that have begun fewest calls come
// first. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "observe/rank_activity.h"

namespace ccom {

struct RankRange {
  Rank first = -1, last = -1;
  friend bool operator==(const RankRange&, const RankRange&) = default;
};

struct ActivityGroup {
  static constexpr int64_t kNoTime = INT64_MIN;
  RankActivity::State state = RankActivity::State::Absent;
  bool is_silent = false;  // was, when it was read: ranks whose processes run are no group with others
  CallDescriptor call{};
  std::string algorithm{}, site{}, message{}, place{};
  std::string host{};  // its name; "": unknown, or ranks of several
  Rank waits_for = -1;
  uint32_t messages = 0;
  int32_t pid = 0;  // of a single rank
  int64_t since_ns = kNoTime, waits_since_ns = kNoTime, beat_ns = kNoTime;
  std::vector<RankRange> ranks{};  // ascending, with ranks between them that are in none

  friend bool operator==(const ActivityGroup&, const ActivityGroup&) = default;
};
using ActivityTable = std::vector<ActivityGroup>;  // as merge() arranges it

inline constexpr int kMostSeparate = 64;
inline constexpr size_t kMostRankRanges = 64;  // of a group; the highest ranks are left out
inline constexpr size_t kMostTableBytes = 8192;
inline constexpr size_t kMostTableText = 120;  // bytes of each text; longer ones lose their end
inline constexpr size_t kMostTableHost = 40;   // of names of hosts, of which there may be one per rank

ActivityTable table_of(const std::vector<RankActivity>& activities, int64_t now_ns);
// Of different ranks.
ActivityTable merge(ActivityTable a, const ActivityTable& b);
// One for each rank below `ranks`, ascending; nothing if the table tells of more than there are.
std::vector<RankActivity> activities_in(const ActivityTable& table, int64_t now_ns, Rank ranks);

// At most kMostTableBytes.
std::vector<std::byte> encode_table(const ActivityTable& table, int64_t now_ns);
// Empty unless the bytes are exactly what encode_table() makes of a table.
std::optional<ActivityTable> decode_table(ConstBytes bytes, int64_t now_ns);

}  // namespace ccom
