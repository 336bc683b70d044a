// SPDX-License-Identifier: Apache-2.0
//
// Finds, over the control tree, why a wait lasts: the ranks that are furthest behind, and ranks that made different
// calls.
//
// A rank that waits knows only its own peers, which may be waiting for a third rank. So every host reports how many
// calls its slowest ranks have begun and which ones its ranks have begun last, and each neighbour in the tree receives
// what is known of all others whenever that changes. Calls of equal number must be equal: that they are not is a fact,
// however old the reports are. Reports carry what each rank does, too, which changes all the time: neighbours are told
// when something else changes, and when the caller says so. Pure. Lasts while a rank of any host asks for it: every
// report says whether one does on the sender's side.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/call.h"
#include "base/types.h"
#include "observe/activity_table.h"

namespace ccom {

// `rank` has begun `call`, and so have others: so many ranks with it, of which it is the lowest.
struct BegunCall {
  CallDescriptor call;
  Rank rank = -1;
  uint32_t ranks = 1;
  friend auto operator<=>(const BegunCall&, const BegunCall&) = default;
};

struct StragglerReport {
  static constexpr uint64_t kNoCalls = UINT64_MAX >> 2;
  uint64_t calls = kNoCalls;       // begun by each of `ranks`; no rank is known to have begun fewer
  std::vector<Rank> ranks{};       // ascending; the first kMost of them
  bool is_asked_for = false;       // by a rank on the sender's side
  std::vector<BegunCall> begun{};  // ascending; the first kMostBegun: of each number two different calls, by the lowest
                                   // rank that made them
  bool asks_places = false;        // whoever asks wants to know where ranks are outside of calls
  ActivityTable activities{};      // of the ranks on the sender's side
  static constexpr size_t kMost = 32;
  static constexpr size_t kMostBegun = 32;
  friend bool operator==(const StragglerReport&, const StragglerReport&) = default;

  // The first calls of equal number that are not equal, or came after results that are not.
  std::optional<std::pair<BegunCall, BegunCall>> find_difference() const;
};

// Of the ranks of both: the one with fewer calls, or both lists of ranks if equal; and what either knows to have begun.
// Without activities, which another merge() takes.
StragglerReport merge(const StragglerReport& a, const StragglerReport& b);

// now_ns: of this host's CLOCK_MONOTONIC, for activities.
std::vector<std::byte> encode_report(const StragglerReport& report, int64_t now_ns);
// Empty unless the bytes are exactly one well-formed report.
std::optional<StragglerReport> decode_report(ConstBytes bytes, int64_t now_ns);

class StragglerPoll {
 public:
  explicit StragglerPoll(size_t neighbours) : received_(neighbours), sent_(neighbours) {}

  // Whether any rank asks for it, on this host or another.
  bool is_on() const;
  // Whether one on another host asks where ranks are.
  bool is_asked_for_places() const;
  // Sets the report of this host.
  void set_own(StragglerReport own) { own_ = std::move(own); }
  // Sets what neighbour `index` has reported for its side of the tree; nothing if it is gone.
  void receive(size_t index, StragglerReport report) { received_[index] = std::move(report); }
  // The report that neighbour `index` has to be sent now, if it has changed. That only activities have is no reason
  // unless tells_activities.
  std::optional<StragglerReport> update_for(size_t index, bool tells_activities);
  // Over everything known, without activities.
  StragglerReport result() const;
  // Of the ranks of other hosts.
  ActivityTable activities_elsewhere() const;

 private:
  StragglerReport without(size_t index) const;
  ActivityTable activities_without(size_t index) const;

  StragglerReport own_;
  std::vector<StragglerReport> received_;  // from each neighbour
  std::vector<StragglerReport> sent_;      // to each neighbour
};

}  // namespace ccom
