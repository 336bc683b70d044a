// SPDX-License-Identifier: Apache-2.0
//
// The process's liveness thread: one, shared by all Monitors, started with the first and joined with the last. It holds
// the life lines, reads the control connections, sends heartbeats and calls failure listeners.
//
// How it waits for three kinds of things at once:
// - Without sockets (all communicators inside this host): FUTEX_WAITV on the abort words of all boards and on a word of
//   its own that knock() changes; it sleeps until one changes or a beat is due. Where the kernel has no FUTEX_WAITV
//   (before 5.16, or a filter) or the boards are more than 127, it waits on its own word in slices of 10 ms.
// - With sockets: epoll on them and on an eventfd that knock() writes, in slices of 5 ms as long as a board is shared.
//   A leader of several hosts looks after its node-mates that often anyway.
//
// After fork() the child has no such thread. It is told by a page that the kernel wipes in children; nothing of the
// parent's is touched there, and a new Monitor in the child gets a new thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"
#include "liveness/life_line.h"
#include "liveness/sockets.h"

namespace ccom {

// Tells a forked child from its parent without a system call. Immutable.
class ForkMark {
 public:
  ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;
  ~ForkMark();
  bool in_child() const;

 private:
  volatile const char* page_;  // null if the kernel cannot do it
  int pid_;
};

// Who the thread looks after. Methods run on the thread.
class Ward {
 public:
  virtual ~Ward() = default;
  // Does what is due; returns when to come back at the latest.
  virtual int64_t turn(int64_t now_ns) = 0;
  // Changes when there is something to do; null if it has.
  virtual const std::atomic<uint32_t>* awaited_word() const = 0;
};

// Methods may be called from any thread of the process, but for those that say otherwise.
class LivenessThread {
 public:
  // Two owners and more: every Monitor of the process; the last one ends it.
  static Result<std::shared_ptr<LivenessThread>> of_this_process();
  ~LivenessThread();
  LivenessThread(const LivenessThread&) = delete;
  LivenessThread& operator=(const LivenessThread&) = delete;

  // A random number, the same for everything in this process.
  uint64_t process() const { return process_; }
  bool in_forked_child() const { return mark_.in_child(); }

  // Runs `work` on the thread and returns when it is done. Not from the thread itself, nor in a forked child.
  void run(const std::function<void()>& work);
  // Gives every ward a turn soon.
  void knock();

  // On the thread only.
  LifeLines& lines() { return *lines_; }
  void add(Ward* ward);
  void remove(Ward* ward);
  // Sets *readable when `fd` has something to read, until unwatch(fd).
  Status watch(int fd, bool* readable);
  void unwatch(int fd);

 private:
  struct Work {
    const std::function<void()>* function;
    bool done = false;
  };

  explicit LivenessThread(uint64_t process) : process_(process) {}
  Status start();
  void loop();
  void run_queue();
  int64_t turn_wards();
  void wait_for_sockets(int64_t until_ns);
  void wait_for_words(uint32_t knocks, int64_t until_ns);

  const uint64_t process_;
  const ForkMark mark_;
  OwnedFd epoll_, knock_event_;
  std::atomic<uint32_t> knocks_{0};
  std::mutex mutex_;  // guards queue_, Work::done and stop_
  std::condition_variable work_done_;
  std::vector<Work*> queue_;
  bool stop_ = false;
  LifeLines* lines_ = nullptr;  // this and the rest: the thread's own
  std::vector<Ward*> wards_;
  int sockets_ = 0;
  bool has_waitv_ = true;
  std::unique_ptr<std::thread> thread_;
};

}  // namespace ccom
