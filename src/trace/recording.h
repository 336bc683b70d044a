// SPDX-License-Identifier: Apache-2.0
//
// What a recorder's file says, as a value.
//
// The file may be of a process that was killed at any instruction, of one that still runs, cut off, or anything else: a
// call is in here if it was recorded as a whole. Times are nanoseconds of CLOCK_MONOTONIC of the process's machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/call.h"
#include "base/status.h"
#include "observe/ticks.h"

namespace ccom {

struct RecordedCall {
  size_t communicator = 0;  // of Recording::communicators
  CallDescriptor call;      // number 0: sends and receives, of `count` bytes together
  int64_t begun_ns = 0;
  std::optional<int64_t> ended_ns;  // empty: it was not over
  int64_t waited_ns = 0;            // of that; waits of a microsecond or longer
  Rank waited_for = -1;             // the longest; -1: none
  Code code = Code::Ok;
  uint32_t site = 0, algorithm = 0;  // of Recording::texts; 0: unknown
  friend bool operator==(const RecordedCall&, const RecordedCall&) = default;
};

struct RecordedCommunicator {
  uint64_t number = 0, parent = 0;  // 0: no part of another
  Rank rank = 0;
  int nranks = 0;
  std::string name;
  std::string topology;       // its JSON; "": its parent's, or it was too long
  std::string costs;          // what was measured at its start, as JSON; "": likewise, or nothing was
  std::vector<Rank> origins;  // by rank: in the parent; empty: no part
  int64_t opened_ns = 0;
  std::optional<int64_t> closed_ns;
  friend bool operator==(const RecordedCommunicator&, const RecordedCommunicator&) = default;
};

struct Recording {
  std::string path;
  std::string host, machine, program;
  int64_t pid = 0;
  int64_t realtime_offset_ns = 0;  // CLOCK_REALTIME minus CLOCK_MONOTONIC, when it began
  int64_t last_ns = 0;             // the latest time in it
  std::vector<RecordedCommunicator> communicators;
  std::vector<RecordedCall> calls;     // by their beginning
  std::vector<std::string> texts{""};  // call sites and algorithms
  uint64_t torn = 0;                   // records that were not whole
  uint64_t unplaced = 0;               // of communicators that others have taken the place of
  uint64_t lost_texts = 0, lost_communicators = 0;
};

// InvalidArgument with the reason for what is no recording, or of one that had not begun.
Result<Recording> read_recording(ConstBytes file);
Result<Recording> read_recording(const std::string& path);

}  // namespace ccom
