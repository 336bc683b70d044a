// SPDX-License-Identifier: Apache-2.0
//
// The tagged point-to-point messages of one rank on one communicator, independent of its collectives.
//
// Any thread may post and wait. Requests go through an inbox to the thread that holds the progress lock and drives the
// protocol: a thread that waits or has just posted, or, if there is none, a background thread. The latter starts with
// the first message that does not complete at once and sleeps without a timeout a few milliseconds after the last one.
// Until then it checks every 500 us whether messages lack a driver, so a thread that posts and waits in a loop need not
// wake it. While driving, it sleeps in the transport, which wakes it at once. Where ranks forward messages of others
// (relay.h) it exists from the start and always drives, so that these go on whatever this rank's program does.
//
// Every step checks the communicator's error, dead peers and deadlines. The first error becomes the communicator's and
// fails all messages. So does a lack of memory, on whichever thread; nothing that was accepted gets lost by it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/backoff.h"
#include "base/mutex.h"
#include "liveness/monitor.h"
#include "messages/progress_lock.h"
#include "messages/protocol.h"

namespace ccom {

// Thread-safe.
class Messages {
 public:
  // Given the communicator's error, once, and whether it ends a message of this rank (forwarding goes on without any):
  // returns the status that all messages fail with.
  using Rename = std::function<Status(Status in_force, bool ends_message)>;
  // The monitor must outlive close().
  Messages(MessageRoutes routes, Monitor& monitor, WaitPolicy policy, Rename rename);
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  Status open();
  // Whether messages to and from that rank are possible. Any thread.
  bool reaches(Rank peer) const { return protocol_.reaches(peer); }
  // Whether this rank forwards messages of others.
  bool forwards() const { return protocol_.forwards(); }
  // Accepts the message unless there is an error already, or no memory for its place. It may be complete on return.
  // Never calls `done`, because the caller may hold locks that `done` takes. Throws nothing.
  Status post(const std::shared_ptr<Message>& message);
  // Waits until the message is complete; false on timeout. Without a deadline the message's own applies. Like test(),
  // may call the `done` of any message. site: who waits.
  bool wait(const Message& message, std::optional<Deadline> deadline, CallSite site = 0);
  // Makes progress and returns whether the message is complete.
  bool test(const Message& message);
  // To be called when the communicator has an error.
  void wake();
  // Fails all messages with a local error and keeps the progress lock for good. Returns after the last `done`; must not
  // be called from within one.
  void close();
  // Whether the calling thread runs a `done`.
  static bool is_within_done();

  struct Usage {
    std::vector<uint64_t> bytes_sent_to;  // by peer
    uint64_t memory_bytes = 0;
  };
  Usage usage();

 private:
  enum class Calls { Now, Later };

  void wait_noted(const Message& message, std::optional<Deadline> deadline, CallSite site);

  // None of these throws: whoever drives holds the progress lock. wait: for `awaited`; null where that is.
  bool drive(const Message* awaited, std::optional<Deadline> deadline, MessageActivity::Wait* wait = nullptr) noexcept;
  bool step() noexcept;
  bool check(Clock::time_point now) noexcept;
  bool can_stop(const Message* awaited) const;
  void sleep(const Message* awaited, std::chrono::nanoseconds at_most) noexcept;
  Status advance(bool& has_progressed);
  Status accept_inbox();
  void fail(const Status& cause) noexcept;
  Status agree_on(const Status& cause) noexcept;
  void end_all(const Status& status) noexcept;
  void step_once(Calls calls);
  void unlock_progress(Calls calls);
  void call_done(const MessageList& due);
  void wake_driver();
  bool try_lock_progress();
  void lock_progress();

  // background.cc
  struct BackgroundTick;
  void watch();
  void wake_background();
  void start_background() CCOM_REQUIRES(thread_mutex_);
  void run_background();
  bool wait_for_tick(Lock& lock, BackgroundTick& round) CCOM_REQUIRES(thread_mutex_);
  void end_background();

  Monitor& monitor_;
  const WaitPolicy policy_;
  const Rename rename_;
  ProgressLock progress_lock_;
  std::atomic<uint64_t> drives_{0};     // how often the progress lock was taken
  std::atomic<int> claims_{0};          // threads that need the progress lock now; close() never gives its claim back
  std::atomic<bool> is_asleep_{false};  // the holder of the progress lock sleeps or is about to
  std::atomic<int> waking_{0};          // threads between the look at is_asleep_ and the end of the waking
  std::atomic<int> waiting_{0};         // threads in wait(), which say so to the monitor
  std::atomic<bool> is_closing_{false};
  // Messages that are not complete, or whose `done` is due; where this rank forwards others', one more than that.
  std::atomic<size_t> open_{0};
  std::atomic<bool> has_due_{false};
  std::atomic<int> calling_{0};  // threads that run callbacks

  Mutex inbox_mutex_;
  MessageList inbox_ CCOM_GUARDED_BY(inbox_mutex_);
  Status refusal_ CCOM_GUARDED_BY(inbox_mutex_);  // why new requests are refused
  std::atomic<bool> has_inbox_{false};

  // Under the progress lock.
  MessageProtocol protocol_;
  MessageList requests_;  // from the inbox, not started
  bool has_failed_ = false;
  bool has_slept_ = false;  // the current driver has slept
  uint32_t steps_ = 0;
  MessageList due_;  // whose `done` is due

  Mutex thread_mutex_;
  std::condition_variable thread_wanted_;
  std::thread thread_ CCOM_GUARDED_BY(thread_mutex_);
  std::atomic<bool> is_watching_{false};  // the background thread polls
  bool is_woken_ CCOM_GUARDED_BY(thread_mutex_) = false;
};

}  // namespace ccom
