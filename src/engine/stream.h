// SPDX-License-Identifier: Apache-2.0
//
// Streams and events on the host: an ordered queue of work, run by a thread of its own, or by a thread that waits for
// it in synchronize(), or calls run_next(): one at a time.
//
// With nothing to do the stream's thread polls for about as long as waking it would take, by yielding only, because its
// caller computes; then it sleeps, and the next piece of work wakes it. So a burst of calls costs one wake-up, also
// where caller and thread share a core: there the thread's first yield lets the caller finish the burst.
//
// Where the last call of run_next() came soon after the work, the thread leaves the next work to such a call, and takes
// it over when none has come in that time: with as many ranks as processors a thread that begins at once takes the
// processor from the one that is about to wait for it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/time.h"
#include "engine/work.h"

namespace ccom {

// One recording of an event: complete once, with the state of the stream's work before it. Thread-safe.
class Milestone {
 public:
  void complete(Status status);
  // nullopt: not yet.
  std::optional<Status> poll() const;
  // InProgress if it is not complete at the deadline; without one, waits as long as the work does.
  Status wait(std::optional<Deadline> deadline) const;

 private:
  mutable Mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<Status> result_ CCOM_GUARDED_BY(mutex_);
  std::atomic<bool> is_complete_{false};
};

// Re-recordable handle. Never recorded: complete. Thread-safe.
class Event {
 public:
  std::shared_ptr<Milestone> recorded() const;
  void record(std::shared_ptr<Milestone> milestone);

 private:
  mutable Mutex mutex_;
  std::shared_ptr<Milestone> milestone_ CCOM_GUARDED_BY(mutex_);
};

// Thread-safe. Work is bounded by its own deadlines, so the destructor, which runs what is queued, is too.
class Stream {
 public:
  Stream();  // throws bad_alloc if the system refuses a thread
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Never blocks. An error does not end the stream: later work runs (and mostly returns the communicator's error).
  void enqueue(Work work);
  // As work, with the first error so far.
  void enqueue_callback(std::function<void(const Status&)> callback);
  void record(Event& event);
  // A Timeout if the event is not complete `at_most` after the stream has got there.
  void wait_for(const Event& event, std::chrono::milliseconds at_most);

  // Ok: nothing queued. InProgress, or the first error since the last synchronize().
  Status query() const;
  // Waits for an empty queue, then returns the first error since the last call and forgets it. Without a deadline, runs
  // in this thread what no other one has begun.
  Status synchronize(std::optional<Deadline> deadline);

  // Runs what is next in the queue in this thread, which may take as long as that. False: nothing is queued, or a
  // thread is running the piece of work before.
  bool run_next() CCOM_EXCLUDES(mutex_);
  // Whether the caller is what the stream runs.
  bool is_called_by_work() const { return runner_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

  // How often work had to wake the thread.
  uint64_t wakeups() const;

 private:
  void run();
  bool wait_for_work();
  bool run_one();
  bool has_next() const CCOM_REQUIRES(mutex_) { return next_ < queue_.size() && runner_ == std::thread::id(); }
  bool is_left_to_others(Clock::time_point now) const CCOM_REQUIRES(mutex_);
  Work take_next() CCOM_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::condition_variable arrived_, idle_;
  std::vector<Work> queue_ CCOM_GUARDED_BY(mutex_);  // from next_ on; empty if there is none
  size_t next_ CCOM_GUARDED_BY(mutex_) = 0;
  Status first_error_ CCOM_GUARDED_BY(mutex_);
  Clock::time_point busy_since_ CCOM_GUARDED_BY(mutex_);    // when busy_ became true
  bool has_helper_ CCOM_GUARDED_BY(mutex_) = false;         // run_next() has been called since then
  bool helpers_come_soon_ CCOM_GUARDED_BY(mutex_) = false;  // the last time
  uint64_t wakeups_ CCOM_GUARDED_BY(mutex_) = 0;
  bool asleep_ CCOM_GUARDED_BY(mutex_) = false;  // whoever clears it wakes the thread
  bool ending_ CCOM_GUARDED_BY(mutex_) = false;
  // Written under the mutex, may be read without.
  std::atomic<bool> has_news_{false};  // something is queued, or the end has come
  std::atomic<bool> busy_{false};      // something is queued or under way
  std::atomic<std::thread::id> runner_{};
  std::thread thread_;
};

}  // namespace ccom
