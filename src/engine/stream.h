// SPDX-License-Identifier: Apache-2.0
//
// Streams and events on the host: an ordered queue of work, run by one thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/status.h"
#include "base/time.h"

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
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<Status> result_;  // guarded by mutex_
};

// Re-recordable handle. Never recorded: complete. Thread-safe.
class Event {
 public:
  std::shared_ptr<Milestone> recorded() const;
  void record(std::shared_ptr<Milestone> milestone);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Milestone> milestone_;  // guarded by mutex_
};

// Thread-safe. Work is bounded by its own deadlines, so the destructor, which runs what is queued, is too.
class Stream {
 public:
  using Work = std::function<Status()>;

  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Never blocks. An error does not end the stream: later work runs (and mostly returns the communicator's error).
  void enqueue(Work work);
  // As work, with the first error so far.
  void enqueue_callback(std::function<void(const Status&)> callback);
  void record(Event& event);
  void wait_for(const Event& event);

  // Ok: nothing queued. InProgress, or the first error since the last synchronize().
  Status query() const;
  // Waits for an empty queue, then returns the first error since the last call and forgets it.
  Status synchronize(std::optional<Deadline> deadline);

 private:
  void run();

  mutable std::mutex mutex_;
  std::condition_variable arrived_, idle_;
  std::deque<Work> queue_;  // guarded by mutex_, as all below
  bool running_ = false;    // a piece of work is under way
  bool ending_ = false;
  Status first_error_;
  std::thread thread_;
};

}  // namespace ccom
