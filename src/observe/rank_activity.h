// SPDX-License-Identifier: Apache-2.0
//
// What a rank does, as values that were read from its record (activity_record.h), and as text.
//
// Whoever has the record mapped may read: other ranks, tools of the same user in other processes. Records of other
// hosts come as RankActivity, which is a plain value: see known_activities() in liveness/monitor.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/call.h"
#include "base/types.h"
#include "observe/activity_record.h"

namespace ccom {

struct RankActivity {
  enum class State : uint8_t {
    Absent,     // has not come yet
    Outside,    // of calls
    InCall,     // in `call`
    Transfers,  // in sends and receives that block
    Message,    // a thread waits for a message, and none is in a call
    Left,       // in order
    Dead,
  };
  Rank rank = -1;
  State state = State::Absent;
  CallDescriptor call{};    // the current one, or the last; number 0: there was none
  std::string algorithm{};  // of that call; "": unknown
  std::string site{};       // who made it; "": unknown
  double seconds = -1;      // in `state`; -1: unknown
  std::string message{};    // that it waits for: "receive from rank 3 (tag 7, 1024 bytes)"
  uint32_t messages = 0;    // that are not complete
  Rank waits_for = -1;      // in that call, or for that message; -1: for nobody, or not long enough to be known
  double waited = 0;        // seconds of that wait
  double silent = -1;       // seconds since the process's liveness thread ran; -1: unknown
  // Where it is outside of calls, as its locator says, or in which call of another communicator (call_elsewhere() in
  // listing.h); "": it has not said.
  std::string place{};
  int32_t pid = 0;     // 0: unknown
  std::string host{};  // "": there is but one, or it does not matter

  friend bool operator==(const RankActivity&, const RankActivity&) = default;
};

inline constexpr double kSilentSeconds = 1.5;  // a process that runs is heard of several times a second

// Whether it is in something that waits for another rank.
bool is_waiting(const RankActivity& activity);
// Whether its process should run, and has not for longer than one that does.
bool is_silent(const RankActivity& activity);

// What `record` says at the time now_ns of CLOCK_MONOTONIC. All parts belong to one call. rank, pid and the states Left
// and Dead are for the caller to fill in. Call sites get file and line if they are known already, or, where
// reads_files, from debug information: that takes milliseconds per program.
RankActivity read_activity(const ActivityRecord& record, int64_t now_ns, bool reads_files);
// The same with the call site as the rank wrote it, for with_source_line() (source_line.h).
RankActivity read_unresolved_activity(const ActivityRecord& record, int64_t now_ns);

// Asks the rank where it is outside of calls; returns the question's number. Who asks wakes its liveness thread
// (Board::ask_places).
uint32_t ask_place(ActivityRecord& record);
// Whether the record holds an answer to that question, or none can come.
bool is_place_told(const ActivityRecord& record, uint32_t question);

// "allreduce #1871"
std::string name_of(const CallDescriptor& call);

// Of one rank, after "is" or "are": "at train.py:220 (step) in allreduce #1871". Without times and without whom it
// waits for, so that texts of ranks that do the same are equal.
std::string text_of(const RankActivity& activity);
// The same with times and with whom it waits for: "not in a call, for 12.4 s now (the last one: ...)".
std::string full_text_of(const RankActivity& activity);

// Of many ranks, those first that differ from most: "rank 3 is at train.py:214 (evaluate), not in a call, for 12.4 s
// now; ranks 0-2 and 4-7 are at train.py:220 in allreduce #1871". Ranks of one host are said to be there: "rank 3 (host
// b) is ...". At most `most_bytes`; "" for none.
std::string describe(std::vector<RankActivity> activities, size_t most_bytes = 700);

}  // namespace ccom
