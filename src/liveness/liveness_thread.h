// SPDX-License-Identifier: Apache-2.0
//
// The process's liveness thread: shared by all Monitors, started with the first and joined with the last. It holds the
// robust futexes, reads the control connections, sends heartbeats and calls failure listeners.
//
// Whoever has something for a task of this process tells which, so that the time of a wake does not grow with their
// number. What other processes write on boards is found by asking tasks, at most 128 in turn every 5 ms, or all when a
// word says so.
//
// How it waits for several kinds of events at once:
// - Without sockets (single-host communicators): FUTEX_WAITV on the abort words of all boards and on its own word,
//   which wake() changes; it sleeps until one changes or a heartbeat is due. Without FUTEX_WAITV (kernels before 5.16,
//   or a seccomp filter), or with more than 127 boards, it waits on its own word in slices of 10 ms.
// - With sockets: epoll on them and on an eventfd that wake() writes, in slices of 5 ms while a board is shared. A
//   leader of several hosts checks its local ranks at that rate anyway.
//
// After fork() the child has no such thread. It detects that by a page that the kernel wipes in children
// (MADV_WIPEONFORK), leaves the parent's state alone and starts a new thread for a new Monitor.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "liveness/fork_detector.h"
#include "liveness/robust_futex.h"
#include "liveness/sockets.h"

namespace ccom {

// Work that the thread polls. Methods run on the thread.
class LivenessTask {
 public:
  virtual ~LivenessTask() = default;
  // Does what is due; returns the time of the next call at the latest.
  virtual int64_t poll(int64_t now_ns) = 0;
  // Whether poll() has to be called before that time although nobody of this process has told the thread (enqueue(),
  // wake()): asked every few milliseconds, of thousands of tasks; this looks at few lines.
  virtual bool has_work() const = 0;
  // poll() has run out of memory.
  virtual void run_out_of_memory() noexcept = 0;
  // A word that changes when there is work; null if it has changed.
  virtual const std::atomic<uint32_t>* awaited_word() const = 0;

 private:
  friend class LivenessThread;
  size_t place_ = 0;        // among the thread's tasks
  bool is_queued_ = false;  // guarded by the thread's mutex, likewise:
  LivenessTask* next_queued_ = nullptr;
};

// Set when a descriptor is readable, and its task is polled then.
struct Readable {
  bool now = false;
  LivenessTask* task = nullptr;
};

// Methods may be called from any thread of the process unless noted.
class LivenessThread {
 public:
  // Owned by all Monitors of the process; destroyed with the last.
  static Result<std::shared_ptr<LivenessThread>> of_this_process();
  ~LivenessThread();
  LivenessThread(const LivenessThread&) = delete;
  LivenessThread& operator=(const LivenessThread&) = delete;

  // A random number that identifies this process.
  uint64_t process() const { return process_; }
  bool in_forked_child() const { return fork_detector_.in_child(); }

  // Runs `work` on the thread and returns when it is done; a bad_alloc in it is thrown here. Must not be called on the
  // thread itself or in a forked child.
  void run(const std::function<void()>& work);
  bool is_current() const { return thread_->get_id() == std::this_thread::get_id(); }
  // Makes the thread poll the task soon, which was added and is not removed meanwhile.
  void wake(LivenessTask* task);

  // On the thread only. enqueue(): as wake(), in this iteration of its loop.
  void enqueue(LivenessTask* task);
  RobustFutexList& robust_futexes() { return *robust_futexes_; }
  void add(LivenessTask* task);
  void remove(LivenessTask* task);
  // Sets *readable whenever `fd` is readable, until unwatch(fd).
  Status watch(int fd, Readable* readable);
  void unwatch(int fd);

 private:
  struct Work {
    const std::function<void()>* function;
    bool done = false;
    bool lacked_memory = false;
    Work* next = nullptr;
  };

  explicit LivenessThread(uint64_t process) : process_(process) {}
  Status start();
  void loop();
  void notify();
  void run_queue();
  void run_once();
  int64_t poll_tasks();
  void poll_queued();
  void look_at_all(int64_t begin_ns, bool asks);
  int64_t poll(LivenessTask& task);
  LivenessTask* take_queued();
  void wait_for_sockets(int64_t until_ns);
  // Whether a task's word has ended the wait.
  bool wait_for_words(uint32_t wakes, int64_t until_ns);

  const uint64_t process_;
  const ForkDetector fork_detector_;
  Descriptor epoll_, wake_event_;
  std::atomic<uint32_t> wakes_{0};
  Mutex mutex_;  // also of Work::done
  std::condition_variable work_done_;
  Work* first_ CCOM_GUARDED_BY(mutex_) = nullptr;  // a queue that needs no memory, because destructors use it
  Work* last_ CCOM_GUARDED_BY(mutex_) = nullptr;
  LivenessTask* first_queued_ CCOM_GUARDED_BY(mutex_) = nullptr;  // likewise
  LivenessTask* last_queued_ CCOM_GUARDED_BY(mutex_) = nullptr;
  bool stop_ CCOM_GUARDED_BY(mutex_) = false;
  RobustFutexList* robust_futexes_ = nullptr;  // from here on: used by the thread only
  struct Due {
    LivenessTask* task;  // null: it was removed
    int64_t next_ns;
  };
  std::vector<Due> tasks_;
  bool has_removed_ = false;
  int64_t earliest_ns_ = 0;  // when one of them is due; some may have been polled since
  bool looks_ = false;       // at all tasks, because one may have work
  bool awaits_words_ = false;
  int64_t looked_ns_ = 0;
  size_t first_asked_ = 0;  // of tasks_, in the next look
  int sockets_ = 0;
  bool has_waitv_ = true;
  std::unique_ptr<std::thread> thread_;
};

}  // namespace ccom
