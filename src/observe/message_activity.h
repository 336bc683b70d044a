// SPDX-License-Identifier: Apache-2.0
//
// Writes what this rank's messages do into its record (activity_record.h): how many are not complete, and for which of
// them a thread has waited longest. They are counted with sends and receives.
#pragma once

#include <array>
#include <string>

#include "base/mutex.h"
#include "base/time.h"
#include "observe/activity_writer.h"
#include "observe/call_site.h"

namespace ccom {

// One end of a message, of this rank.
struct MessageEnd {
  bool sends = false;
  Rank peer = -1;  // -1: any
  int64_t tag = 0;
  uint64_t bytes = 0;
};
// "rank 3 (tag 7, 1024 bytes)"
std::string peer_text_of(const MessageEnd& end);
// "receive from rank 3 (tag 7, 1024 bytes)"
std::string text_of(const MessageEnd& end);

// Thread-safe.
class MessageActivity {
 public:
  // Record and writer outlive it.
  MessageActivity(ActivityRecord& record, ActivityWriter& writer) : record_(record), writer_(writer) {}
  MessageActivity(const MessageActivity&) = delete;
  MessageActivity& operator=(const MessageActivity&) = delete;

  void begin() { record_.messages.pending.fetch_add(1, std::memory_order_relaxed); }
  void end(uint64_t bytes) {
    record_.messages.pending.fetch_sub(1, std::memory_order_relaxed);
    record_.counters.count_message(bytes);
  }

  // What threads have waited for a message. Who waits again within a tenth of a second has waited since the first time.
  struct Waited {
    int64_t since_ns = 0, until_ns = 0;
    int threads = 0;              // that wait now
    std::atomic<int64_t> ns = 0;  // not counted yet
  };
  // A thread's wait for a message, on its stack.
  class Wait {
   public:
    // activity: null for none. waited: of the message, for all waits.
    Wait(MessageActivity* activity, const MessageEnd& end, CallSite site, Waited& waited)
        : activity_(activity), end_(end), site_(site), waited_(waited) {}
    ~Wait() { leave(); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    // It has lasted since then: to be told once, as soon as the clock was read.
    bool is_noted() const { return since_ns_ != 0; }
    void note(Clock::time_point since);
    // The message is complete; what it was waited for is counted. peer: whom it came from, or was for.
    void complete(Rank peer);

   private:
    friend class MessageActivity;
    void leave();
    MessageActivity* const activity_;
    const MessageEnd end_;
    const CallSite site_;
    Waited& waited_;
    int64_t since_ns_ = 0;  // 0: it is not noted
  };

 private:
  static constexpr size_t kWaits = 16;  // further ones are counted, not shown

  void show_longest() CCOM_REQUIRES(mutex_);

  ActivityRecord& record_;
  ActivityWriter& writer_;
  Mutex mutex_;  // also of each message's times
  std::array<const Wait*, kWaits> waits_ CCOM_GUARDED_BY(mutex_){};
  const Wait* shown_ CCOM_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace ccom
