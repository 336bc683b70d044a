// SPDX-License-Identifier: Apache-2.0
//
// What a rank's liveness thread writes into its record: that the process runs, since when no call has ended, and, when
// somebody asks, where the rank is outside of calls.
#pragma once

#include "observe/activity_record.h"

namespace ccom {

// Belongs to the liveness thread, but for is_asked().
class ActivityPulse {
 public:
  // The record outlives it.
  explicit ActivityPulse(ActivityRecord& record) : record_(record) {}

  // Several times a second.
  void beat(int64_t now_ns);
  // Whether there is a question that has no answer. Any thread.
  bool is_asked() const;
  // Answers it if the answer is there, and has it made otherwise. True: to be repeated a millisecond later.
  bool answer(int64_t now_ns);

 private:
  ActivityRecord& record_;
  uint32_t question_ = 0;  // that is being answered
  int64_t asked_ns_ = 0;   // since then
  uint64_t calls_ = 0, transfers_ = 0, seen_ns_ = 0;
};

}  // namespace ccom
