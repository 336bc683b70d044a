// SPDX-License-Identifier: Apache-2.0
#include "liveness/liveness_thread.h"

#include <linux/futex.h>
#include <linux/sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <new>
#include <utility>

#include "base/mutex.h"
#include "base/secret.h"
#include "base/thread.h"
#include "base/time.h"

namespace ccom {
namespace {

constexpr size_t kAskedAtOnce = 128;  // 1,000 tasks are asked within 40 ms
constexpr int64_t kSocketSliceNs = 5 * kNsPerMs;
constexpr int64_t kWordSliceNs = 10 * kNsPerMs;
constexpr int64_t kLongestNs = 1000 * kNsPerMs;

int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

// Of sched_setattr(2); <linux/sched/types.h> and <sched.h> cannot both be included.
struct SchedulingAttributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

constexpr int32_t kNice = -10;
constexpr uint64_t kRunsForNs = 100'000;  // the least that the kernel takes

// The calling thread, which runs for microseconds at a time, is to get a core soon beside many busy threads, however
// low the priority of its process: who hears nothing of it takes the process for stopped. What is not allowed, or not
// known to the kernel, is left as it is. A short slice needs no privilege: it brings the turn of a thread that wakes
// nearer (Linux 6.12). Threads that this one starts inherit neither.
void ask_for_prompt_cores() {
  SchedulingAttributes own{};
  if (::syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) != 0) return;
  if (own.policy != SCHED_OTHER && own.policy != SCHED_BATCH && own.policy != SCHED_IDLE) return;
  own.flags = SCHED_FLAG_RESET_ON_FORK;
  own.runtime = kRunsForNs;
  SchedulingAttributes raised = own;
  raised.policy = SCHED_OTHER;
  raised.nice = std::min(own.nice, kNice);
  if (::syscall(SYS_sched_setattr, 0, &raised, 0) != 0) ::syscall(SYS_sched_setattr, 0, &own, 0);
}

timespec to_timespec(int64_t ns) { return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000}; }

// State that a process has once. The only global of this library part, and deliberate: robust futexes need a thread
// that outlives all Monitors of the process, and Monitors of unrelated communicators do not know each other. Never
// destroyed, because a communicator may outlive static destruction. A forked child makes a new one, whatever the state
// of the lock.
struct ProcessWide {
  const ForkDetector fork_detector;
  const uint64_t process = random_u64();
  Mutex mutex;
  std::weak_ptr<LivenessThread> thread CCOM_GUARDED_BY(mutex);
};
constinit std::atomic<ProcessWide*> process_wide{nullptr};

ProcessWide& of_this_process_wide() {
  ProcessWide* current = process_wide.load(std::memory_order_acquire);
  if (current != nullptr && !current->fork_detector.in_child()) return *current;
  auto* created = new ProcessWide;
  if (process_wide.compare_exchange_strong(current, created, std::memory_order_acq_rel)) return *created;
  delete created;
  return *current;
}

}  // namespace

Result<std::shared_ptr<LivenessThread>> LivenessThread::of_this_process() {
  ProcessWide& shared = of_this_process_wide();
  const Lock lock(shared.mutex);
  if (auto running = shared.thread.lock()) return running;
  std::shared_ptr<LivenessThread> created(new LivenessThread(shared.process));
  CCOM_TRY(created->start());
  shared.thread = created;
  return created;
}

Status LivenessThread::start() {
  epoll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  wake_event_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.is_open() || !wake_event_.is_open())
    return system_error(errno, "open an epoll and an event descriptor for the liveness thread");
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_event_.get(), &event) != 0)
    return system_error(errno, "watch the liveness thread's event descriptor");
  auto thread = std::make_unique<std::thread>();
  if (const int refused = start_thread(*thread, "ccom-liveness", [this] { loop(); }); refused != 0)
    return system_error(refused, "start the liveness thread");
  thread_ = std::move(thread);
  return Status::ok();
}

LivenessThread::~LivenessThread() {
  if (!thread_) return;
  if (in_forked_child()) {
    (void)thread_.release();  // the thread runs in the parent; there is nothing to join
    return;
  }
  {
    const Lock lock(mutex_);
    stop_ = true;
  }
  notify();
  thread_->join();
}

// The thread is woken without the lock, which it takes first.
void LivenessThread::run(const std::function<void()>& work) {
  CCOM_ASSERT(!is_current());
  Work item{&work};
  {
    const Lock lock(mutex_);
    (first_ == nullptr ? first_ : last_->next) = &item;
    last_ = &item;
  }
  notify();
  {
    // The thread never blocks for long: this waits for one iteration of its loop.
    Lock lock(mutex_);
    lock.wait(work_done_, [&item] { return item.done; });
  }
  if (item.lacked_memory) throw std::bad_alloc();
}

void LivenessThread::enqueue(LivenessTask* task) {
  const Lock lock(mutex_);
  if (std::exchange(task->is_queued_, true)) return;
  task->next_queued_ = nullptr;
  (first_queued_ == nullptr ? first_queued_ : last_queued_->next_queued_) = task;
  last_queued_ = task;
}

void LivenessThread::wake(LivenessTask* task) {
  enqueue(task);
  if (!is_current()) notify();
}

void LivenessThread::notify() {
  wakes_.fetch_add(1, std::memory_order_acq_rel);
  ::syscall(SYS_futex, &wakes_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  const uint64_t one = 1;
  (void)!::write(wake_event_.get(), &one, sizeof one);
}

void LivenessThread::add(LivenessTask* task) {
  tasks_.push_back({task, 0});
  task->place_ = tasks_.size() - 1;
  earliest_ns_ = 0;
  awaits_words_ = true;
}

void LivenessThread::remove(LivenessTask* task) {
  tasks_[task->place_].task = nullptr;
  has_removed_ = true;
  const Lock lock(mutex_);
  if (!std::exchange(task->is_queued_, false)) return;
  LivenessTask* before = nullptr;
  for (LivenessTask* each = first_queued_; each != task; each = each->next_queued_) before = each;
  (before == nullptr ? first_queued_ : before->next_queued_) = task->next_queued_;
  if (last_queued_ == task) last_queued_ = before;
}

Status LivenessThread::watch(int fd, Readable* readable) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.ptr = readable;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return system_error(errno, "watch a control connection");
  ++sockets_;
  return Status::ok();
}

void LivenessThread::unwatch(int fd) {
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr) == 0) --sockets_;
}

void LivenessThread::loop() {
  ask_for_prompt_cores();
  RobustFutexList robust_futexes;
  robust_futexes_ = &robust_futexes;
  for (;;) {
    try {
      run_once();
    } catch (const std::bad_alloc&) {  // for the list of words to wait for
      std::this_thread::sleep_for(std::chrono::nanoseconds(kSocketSliceNs));
    }
    const Lock lock(mutex_);
    if (stop_) return;
  }
}

void LivenessThread::run_once() {
  const uint32_t wakes = wakes_.load(std::memory_order_acquire);
  run_queue();
  {
    const Lock lock(mutex_);
    if (stop_) return;
  }
  const int64_t until_ns = poll_tasks();
  looks_ = false;
  if (sockets_ > 0) {
    wait_for_sockets(until_ns);
  } else {
    looks_ = wait_for_words(wakes, until_ns);
  }
}

void LivenessThread::run_queue() {
  Work* queue = nullptr;
  {
    const Lock lock(mutex_);
    queue = std::exchange(first_, nullptr);
  }
  if (queue == nullptr) return;
  for (Work* work = queue; work != nullptr; work = work->next) {
    try {
      (*work->function)();
    } catch (const std::bad_alloc&) {
      work->lacked_memory = true;
    }
  }
  const Lock lock(mutex_);
  for (Work* work = queue; work != nullptr; work = work->next) work->done = true;  // its caller needs the mutex to go
  work_done_.notify_all();
}

// What has arrived comes first: tasks that are due may find out that nothing has for long.
int64_t LivenessThread::poll_tasks() {
  const int64_t begin_ns = now_ns();
  poll_queued();
  const bool asks = looks_ || begin_ns - looked_ns_ >= kSocketSliceNs;
  if (asks || begin_ns >= earliest_ns_) look_at_all(begin_ns, asks);
  poll_queued();
  return std::min(earliest_ns_, begin_ns + kLongestNs);
}

int64_t LivenessThread::poll(LivenessTask& task) {
  try {
    return task.poll(now_ns());
  } catch (const std::bad_alloc&) {
    task.run_out_of_memory();
    return now_ns() + kSocketSliceNs;
  }
}

LivenessTask* LivenessThread::take_queued() {
  const Lock lock(mutex_);
  LivenessTask* const task = first_queued_;
  if (task == nullptr) return nullptr;
  first_queued_ = task->next_queued_;
  task->is_queued_ = false;
  return task;
}

// Tasks may enqueue others, or be removed, by polls.
void LivenessThread::poll_queued() {
  while (LivenessTask* const task = take_queued()) {
    const int64_t next_ns = poll(*task);
    tasks_[task->place_].next_ns = next_ns;
    earliest_ns_ = std::min(earliest_ns_, next_ns);
  }
}

// asks: them whether they have work; of very many some each time, so that a look takes no longer the more there are.
void LivenessThread::look_at_all(int64_t begin_ns, bool asks) {
  if (std::exchange(has_removed_, false)) {
    std::erase_if(tasks_, [](const Due& due) { return due.task == nullptr; });
    for (size_t i = 0; i < tasks_.size(); ++i) tasks_[i].task->place_ = i;
  }
  if (asks) looked_ns_ = begin_ns;
  const size_t count = tasks_.size();  // more may be added
  const bool asks_all = looks_ || count <= kAskedAtOnce;
  const size_t first = asks_all ? 0 : first_asked_ % count;
  const auto is_asked = [&](size_t i) { return asks && (asks_all || (i + count - first) % count < kAskedAtOnce); };
  int64_t earliest_ns = INT64_MAX;
  earliest_ns_ = INT64_MAX;
  awaits_words_ = false;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    LivenessTask* const task = tasks_[i].task;
    if (task == nullptr) continue;
    if (begin_ns >= tasks_[i].next_ns || (is_asked(i) && task->has_work())) tasks_[i].next_ns = poll(*task);
    earliest_ns = std::min(earliest_ns, tasks_[i].next_ns);
    awaits_words_ = awaits_words_ || task->awaited_word() != nullptr;
  }
  if (asks) first_asked_ = first + kAskedAtOnce;
  earliest_ns_ = std::min(earliest_ns_, earliest_ns);
}

void LivenessThread::wait_for_sockets(int64_t until_ns) {
  int64_t left_ns = std::max<int64_t>(0, until_ns - now_ns());
  if (awaits_words_) left_ns = std::min(left_ns, kSocketSliceNs);
  epoll_event events[32];
  const int count = ::epoll_wait(epoll_.get(), events, 32, static_cast<int>((left_ns + kNsPerMs - 1) / kNsPerMs));
  for (int i = 0; i < count; ++i) {
    if (events[i].data.ptr != nullptr) {
      auto& readable = *static_cast<Readable*>(events[i].data.ptr);
      readable.now = true;
      enqueue(readable.task);
    } else {
      uint64_t wakes = 0;
      (void)!::read(wake_event_.get(), &wakes, sizeof wakes);
    }
  }
}

// Its own word is the first.
bool LivenessThread::wait_for_words(uint32_t wakes, int64_t until_ns) {
  std::vector<futex_waitv> words;
  const auto await = [&words](const std::atomic<uint32_t>* word, uint32_t value) {
    words.push_back({.val = value, .uaddr = reinterpret_cast<uintptr_t>(word), .flags = FUTEX_32, .__reserved = 0});
  };
  await(&wakes_, wakes);
  for (const Due& due : tasks_) {
    if (words.size() > FUTEX_WAITV_MAX) break;
    const auto* word = due.task == nullptr ? nullptr : due.task->awaited_word();
    if (word != nullptr) await(word, 0);
  }
  if (has_waitv_ && words.size() <= FUTEX_WAITV_MAX) {
    const timespec until = to_timespec(until_ns);
    const long outcome = ::syscall(SYS_futex_waitv, words.data(), words.size(), 0, &until, CLOCK_MONOTONIC);
    if (outcome >= 0 || errno == EAGAIN || errno == ETIMEDOUT || errno == EINTR)
      return outcome > 0 || (outcome < 0 && errno == EAGAIN && wakes_.load(std::memory_order_acquire) == wakes);
    has_waitv_ = false;
  }
  int64_t left_ns = std::max<int64_t>(0, until_ns - now_ns());
  if (words.size() > 1) left_ns = std::min(left_ns, kWordSliceNs);
  const timespec left = to_timespec(left_ns);
  ::syscall(SYS_futex, &wakes_, FUTEX_WAIT, wakes, &left, nullptr, 0);
  return false;
}

}  // namespace ccom
