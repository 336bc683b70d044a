// SPDX-License-Identifier: Apache-2.0
//
// Writes what this rank does into its record (activity_record.h).
//
// Calls shorter than kTimedBytes are timed one in kTimedOneIn: two clock reads would be a fifth of the shortest ones.
// Waits are noted when they have lasted until the wait's first look at the clock, about a microsecond.
#pragma once

#include <string_view>

#include "base/mutex.h"
#include "base/time.h"
#include "observe/activity_record.h"
#include "observe/call_site.h"
#include "observe/recorder.h"

namespace ccom {

// Belongs to whoever has the rank's turn, but for count_wait().
class ActivityWriter {
 public:
  static constexpr uint64_t kTimedBytes = 4096, kTimedOneIn = 64;

  // The record outlives the writer, which is its only one.
  explicit ActivityWriter(ActivityRecord& record) : record_(record), texts_(record.texts) {}
  ActivityWriter(const ActivityWriter&) = delete;
  ActivityWriter& operator=(const ActivityWriter&) = delete;

  // Records calls there too, from the next one on; null: no longer.
  void record_to(CallRecorder* recorder) { recorder_ = recorder; }

  // Where collective calls of that kind are counted; bytes: of their unit. Lives as long as the record.
  CallCounters::Cell& cell_of(uint64_t kind, uint64_t bytes) const {
    return record_.counters.cell_of(collective_of(kind), bytes);
  }
  // A collective call, with the next number. bytes: of its unit.
  void begin(const CallDescriptor& call, CallSite site, uint64_t bytes) {
    begin(call, site, bytes, cell_of(call.kind, bytes));
  }
  void begin(const CallDescriptor& call, CallSite site, uint64_t bytes, CallCounters::Cell& cell) {
    origin_ = {site_reference(site), 0};
    record_.calls.begin(call, origin_);
    collective_ = collective_of(call.kind);
    cell_ = &cell;
    bytes_ = bytes;
    current_ = call.number;
    if (bytes >= kTimedBytes || call.number % kTimedOneIn == 0) begin_time();
    if (recorder_ != nullptr) recorder_->begin(call, site);
  }
  // It runs so. hash: hash_of_text(name).
  void set_algorithm(std::string_view name, uint64_t hash);
  // The call, or the sends and receives, that have begun: so they end.
  void set_result(const Status& status) {
    if (!status.is_ok()) [[unlikely]]
      result_ = status.code();
  }
  [[gnu::always_inline]] void end() {
    if (current_ == 0) return;
    if (recorder_ != nullptr) end_record();
    record_.calls.end();
    CallCounters::count(*cell_, bytes_);
    if (begun_ns_ != 0) end_time();
    current_ = 0;
  }

  // Sends and receives that block, which have no number.
  void begin_transfers(CallSite site);
  void count_transfer(uint64_t bytes) {
    record_.counters.count_message(bytes);
    bytes_ += bytes;
    if (recorder_ != nullptr) recorder_->set_count(bytes_);
  }
  void end_transfers();

  // What has begun and not ended waits for `peer`.
  void begin_wait(Rank peer, Clock::time_point since);
  void end_wait();
  // A wait of this rank that is over. Any thread.
  void count_wait(const CallCounters::Wait& wait) {
    const Lock lock(counting_waits_);
    record_.counters.count_wait(wait);
  }

  const ActivityRecord& record() const { return record_; }
  CallDescriptor last_call() const { return record_.calls.last(); }

 private:
  static constexpr uint64_t kInTransfers = CallCounters::kNoNumber;  // a call's number

  uint32_t site_reference(CallSite site) {
    return site == 0 ? 0 : texts_.of(site, [site] { return text_of(site); });
  }
  static Collective collective_of(uint64_t kind) { return static_cast<Collective>(kind & ~kIsV & 0xff); }
  void begin_time();
  void end_time();
  void end_record();

  ActivityRecord& record_;
  Mutex counting_waits_;  // of calls and of messages, which have threads of their own
  TextIndex texts_;
  uint64_t current_ = 0;  // number of the call that has begun and not ended
  uint64_t bytes_ = 0;
  uint64_t begun_ns_ = 0;  // 0: it is not timed
  uint64_t waits_since_ns_ = 0;
  Rank waits_for_ = -1;
  Collective collective_ = Collective::AllReduce;
  CallCounters::Cell* cell_ = nullptr;  // of the call that has begun
  CallOrigin origin_;
  CallRecorder* recorder_ = nullptr;  // null: none
  Code result_ = Code::Ok;            // of the call that has begun
};

// At the end of a scope, however it is left.
class EndOfCall {
 public:
  explicit EndOfCall(ActivityWriter& activity) : activity_(activity) {}
  [[gnu::always_inline]] ~EndOfCall() { activity_.end(); }
  EndOfCall(const EndOfCall&) = delete;
  EndOfCall& operator=(const EndOfCall&) = delete;

 private:
  ActivityWriter& activity_;
};

class EndOfTransfers {
 public:
  explicit EndOfTransfers(ActivityWriter& activity) : activity_(activity) {}
  ~EndOfTransfers() { activity_.end_transfers(); }
  EndOfTransfers(const EndOfTransfers&) = delete;
  EndOfTransfers& operator=(const EndOfTransfers&) = delete;

 private:
  ActivityWriter& activity_;
};

}  // namespace ccom
