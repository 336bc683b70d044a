// SPDX-License-Identifier: Apache-2.0
//
// The messages of one rank on one communicator: tagged, independent of one another's order and of the collectives'.
//
// Any thread posts and waits. What they ask for goes through an inbox to whoever holds the progress lock and drives the protocol:
// a thread that waits, or that has just posted; if nobody does, a thread of our own. That one starts with the first
// message that is not complete at once, and sleeps for good a few milliseconds after the last. In between it looks
// every half a millisecond whether messages are left alone, so that a thread that posts and waits, posts and waits,
// need not wake it; while it drives it sleeps in the transport and is awake at once.
//
// Every drive looks at the communicator's error, at dead peers and at deadlines. The first error is the communicator's,
// and ends all messages.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/backoff.h"
#include "liveness/monitor.h"
#include "messages/progress_lock.h"
#include "messages/protocol.h"

namespace ccom {

// Thread-safe.
class Messages {
 public:
  // Of an error that ends all messages, once: what they are complete with.
  using Rename = std::function<Status(Status in_force)>;
  // The monitor outlives close().
  Messages(MessageRoutes routes, Monitor& monitor, WaitPolicy policy, Rename rename);
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  Status open();
  // Takes the message on, unless there is an error already. It may be complete on return. Calls no `done`: the caller
  // may hold locks that it takes.
  Status post(const std::shared_ptr<Message>& message);
  // Until it is complete, or the time is up: false. Without a deadline: the message has one. May call the `done` of any
  // message, as test() may.
  bool wait(const Message& message, std::optional<Deadline> deadline);
  // Whether it is complete now.
  bool test(const Message& message);
  // The communicator has an error.
  void wake();
  // Ends all messages with an error of this rank alone; the progress lock is never free again. Not from within a `done`; returns
  // when the last of them has.
  void close();
  // The calling thread is within a `done`.
  static bool is_within_done();

  struct Usage {
    std::vector<uint64_t> bytes_sent_to;  // by peer
    uint64_t memory_bytes = 0;
  };
  Usage usage();

 private:
  using Due = std::vector<std::shared_ptr<Message>>;  // whose `done` is to be called
  enum class Calls { Now, Later };

  bool drive(const Message* awaited, std::optional<Deadline> deadline);
  bool step();
  bool look(Clock::time_point now);
  bool is_relieved(const Message* awaited) const;
  void nap(const Message* awaited, std::chrono::nanoseconds at_most);
  Status serve_inbox();
  void fail(const Status& cause);
  void end_all(const Status& status);
  void turn(Calls calls);
  void unlock_progress(Calls calls);
  void call_done(const Due& due);
  void nudge();
  bool try_lock_progress();
  void lock_progress();

  // background.cc
  struct Round;
  void watch();
  void rouse();
  void start_thread();
  void run_background();
  bool rest(std::unique_lock<std::mutex>& lock, Round& round);
  void end_background();

  Monitor& monitor_;
  const WaitPolicy policy_;
  const Rename rename_;
  ProgressLock progress_lock_;
  std::atomic<uint64_t> drives_{0};     // the progress lock was taken, ever
  std::atomic<int> claims_{0};          // the progress lock is wanted at once; close() never gives it up
  std::atomic<bool> is_asleep_{false};  // who holds the progress lock, or it is about to be
  std::atomic<bool> is_closing_{false};
  std::atomic<size_t> open_{0};  // messages that are not complete, or whose `done` is due
  std::atomic<bool> has_due_{false};
  std::atomic<int> calling_{0};  // threads that call `done`

  std::mutex inbox_mutex_;
  std::vector<std::shared_ptr<Message>> inbox_;  // guarded by inbox_mutex_, as is refusal_
  Status refusal_;                               // why nothing is taken on any more
  std::atomic<bool> has_inbox_{false};

  // Under the progress lock.
  MessageProtocol protocol_;
  bool has_failed_ = false;
  bool was_long_ = false;  // the present drive slept
  uint32_t steps_ = 0;
  Due due_;

  std::mutex thread_mutex_;
  std::condition_variable thread_wanted_;
  std::thread thread_;                    // guarded by thread_mutex_
  std::atomic<bool> is_watching_{false};  // it does not sleep for good
  bool is_roused_ = false;                // guarded by thread_mutex_
};

}  // namespace ccom
