// SPDX-License-Identifier: Apache-2.0
//
// The calls of the ranks of a communicator side by side, where they begin to differ, and what each does in the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace/recorded_job.h"

namespace ccom {

struct ComparedCall {
  enum class State : uint8_t { Ended, Failed, Inside, NotMade, Left, NotRecorded };
  // Ranks whose call was the same and went alike.
  struct Part {
    std::vector<Rank> ranks;
    State state = State::Ended;
    CallDescriptor call;  // of NotMade, Left: the last one that they made
    std::string site;
    Code code = Code::Ok;
    Rank waits_for = -1;  // Inside; Failed: waited for
    // NotMade, Left: the call that it was in instead; one that others have ended, or one of another communicator.
    struct Instead {
      uint64_t communicator = 0;
      std::string name;  // of the communicator
      CallDescriptor call;
      std::string site;
      State state = State::Inside;  // or Failed
      Code code = Code::Ok;
      Rank waits_for = -1;  // likewise; a rank of that communicator
      friend bool operator==(const Instead&, const Instead&) = default;
    };
    std::optional<Instead> instead;
    bool is_silent = false;  // Inside, NotMade: the process has recorded nothing, as one does that is stopped or dead
    int64_t silent_ns = 0;   // for so long before the job's last record
    // On the job's clock: when the first and the last of them began; of NotMade and Left when they ended their last
    // call.
    int64_t first_begun_ns = 0, last_begun_ns = 0;
    int64_t longest_ns = 0;  // that a call took, or takes, and with `instead` that one
  };
  uint64_t number = 0;
  std::vector<Part> parts;    // the one of most ranks first
  bool is_different = false;  // ranks made different calls, or some have not made it
};

// The first call that ranks made differently, or that some have not made while others have; empty: there is none among
// those that are recorded.
std::optional<uint64_t> first_difference(const RecordedGroup& group);

ComparedCall compare_call(const RecordedJob& job, const RecordedGroup& group, uint64_t number);

// The last `count` calls, or those from shortly before the first difference.
std::vector<ComparedCall> last_calls(const RecordedJob& job, const RecordedGroup& group, size_t count);

}  // namespace ccom
