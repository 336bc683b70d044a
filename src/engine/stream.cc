// SPDX-License-Identifier: Apache-2.0
#include "engine/stream.h"

#include "base/assert.h"
#include "base/backoff.h"
#include "base/thread.h"

namespace ccom {
namespace {

// As long as waking a thread takes: who waits longer has at worst paid twice. The clock is looked at each time, because
// one yield may take a slice of the scheduler, and a thread that does not sleep is not woken by what it waits for.
constexpr WaitPolicy kBeforeSleep{
    .spin = std::chrono::nanoseconds(0), .yield = std::chrono::microseconds(50), .yields_per_clock = 1};
constexpr size_t kKeptCapacity = 4096;  // of a queue that was longer once
// How long work is left to threads that wait for it, where they use to come; and the pause between looks at them.
constexpr std::chrono::microseconds kSoon{300};
constexpr std::chrono::milliseconds kLookingOn{10};  // after the last work; then the thread sleeps until it is woken

// Until `flag` is `value`, or it is time to sleep.
void poll_for(const std::atomic<bool>& flag, bool value) {
  Backoff backoff(kBeforeSleep);
  while (flag.load(std::memory_order_acquire) != value && backoff.step() == Backoff::Next::Poll) {
  }
}

bool may_poll(const std::optional<Deadline>& deadline) { return !deadline || !deadline->passed(); }

}  // namespace

void Milestone::complete(Status status) {
  const Lock lock(mutex_);
  CCOM_ASSERT(!result_);
  result_ = std::move(status);
  is_complete_.store(true, std::memory_order_release);
  changed_.notify_all();
}

std::optional<Status> Milestone::poll() const {
  const Lock lock(mutex_);
  return result_;
}

Status Milestone::wait(std::optional<Deadline> deadline) const {
  if (may_poll(deadline)) poll_for(is_complete_, true);
  Lock lock(mutex_);
  const auto done = [this]() CCOM_REQUIRES(mutex_) { return result_.has_value(); };
  if (!deadline) {
    lock.wait(changed_, done);
  } else if (!lock.wait_until(changed_, deadline->when(), done)) {
    return error(Code::InProgress, "the event is not complete yet");
  }
  return *result_;
}

std::shared_ptr<Milestone> Event::recorded() const {
  const Lock lock(mutex_);
  return milestone_;
}

void Event::record(std::shared_ptr<Milestone> milestone) {
  const Lock lock(mutex_);
  milestone_ = std::move(milestone);
}

Stream::Stream() {
  if (start_thread(thread_, "ccom-stream", [this] { run(); }) != 0) throw std::bad_alloc();
}

Stream::~Stream() {
  {
    const Lock lock(mutex_);
    ending_ = true;
    asleep_ = false;
    has_news_.store(true, std::memory_order_release);
    arrived_.notify_one();
  }
  thread_.join();
}

void Stream::enqueue(Work work) {
  bool wakes = false;
  {
    const Lock lock(mutex_);
    if (queue_.size() == queue_.capacity() && 2 * next_ > queue_.size()) {
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(std::exchange(next_, 0)));
    }
    queue_.push_back(std::move(work));
    if (!busy_.exchange(true, std::memory_order_relaxed)) busy_since_ = Clock::now();
    has_news_.store(true, std::memory_order_release);
    wakes = std::exchange(asleep_, false);
    if (wakes) ++wakeups_;
  }
  if (wakes) arrived_.notify_one();
}

uint64_t Stream::wakeups() const {
  const Lock lock(mutex_);
  return wakeups_;
}

void Stream::enqueue_callback(std::function<void(const Status&)> callback) {
  enqueue([this, callback = std::move(callback)] {
    Status state;
    {
      const Lock lock(mutex_);
      state = first_error_;
    }
    callback(state);
    return Status();
  });
}

void Stream::record(Event& event) {
  auto milestone = std::make_shared<Milestone>();
  enqueue_callback([milestone](const Status& state) { milestone->complete(state); });
  event.record(milestone);  // only now: without memory for the queue it would never be complete
}

void Stream::wait_for(const Event& event, std::chrono::milliseconds at_most) {
  const std::shared_ptr<Milestone> milestone = event.recorded();
  if (milestone == nullptr) return;
  enqueue([milestone, at_most] {
    Status state = milestone->wait(Deadline::after(at_most));
    if (state.code() != Code::InProgress) return state;
    return error(Code::Timeout, "an event that a stream waits for was not complete after %lld ms",
                 static_cast<long long>(at_most.count()))
        .with_cure("see what the event's stream is doing; raise CCOM_TIMEOUT_MS if it is only slow");
  });
}

Status Stream::query() const {
  const Lock lock(mutex_);
  if (!first_error_.is_ok()) return first_error_;
  return busy_ ? error(Code::InProgress, "operations are queued") : Status();
}

Status Stream::synchronize(std::optional<Deadline> deadline) {
  while (!deadline && run_next()) {
  }
  if (may_poll(deadline)) poll_for(busy_, false);
  Lock lock(mutex_);
  const auto empty = [this] { return !busy_; };
  if (!deadline) {
    lock.wait(idle_, empty);
  } else if (!lock.wait_until(idle_, deadline->when(), empty)) {
    return error(Code::Timeout, "the stream still has operations queued");
  }
  return std::exchange(first_error_, Status());
}

namespace {

// An exception must not end the process from a library's thread.
Status contained(Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& exception) {
    return error(Code::InternalError, "an operation on a stream failed: %s", exception.what());
  }
}

}  // namespace

Work Stream::take_next() {
  Work work = std::move(queue_[next_++]);
  if (next_ == queue_.size()) {
    queue_.clear();
    next_ = 0;
    if (queue_.capacity() > kKeptCapacity) queue_ = std::vector<Work>();
  }
  return work;
}

bool Stream::run_next() {
  {
    const Lock lock(mutex_);
    if (busy_ && !std::exchange(has_helper_, true)) helpers_come_soon_ = Clock::now() - busy_since_ < kSoon;
  }
  return run_one();
}

bool Stream::run_one() {
  Work work;
  {
    const Lock lock(mutex_);
    if (!has_next()) return false;
    work = take_next();
    runner_ = std::this_thread::get_id();
  }
  Status status = contained(work);
  work.reset();  // before anybody hears that it is done
  const Lock lock(mutex_);
  runner_ = std::thread::id();
  if (!status.is_ok() && first_error_.is_ok()) first_error_ = std::move(status);
  if (queue_.empty()) {
    if (!std::exchange(has_helper_, false)) helpers_come_soon_ = false;
    busy_.store(false, std::memory_order_release);
    idle_.notify_all();
  }
  return true;
}

bool Stream::is_left_to_others(Clock::time_point now) const {
  return helpers_come_soon_ && !ending_ && now - busy_since_ < (has_next() ? kSoon : kLookingOn);
}

void Stream::run() {
  do {
    while (run_one()) {
    }
  } while (wait_for_work());
}

// False: the end, and nothing is left to do.
bool Stream::wait_for_work() {
  Lock lock(mutex_);
  if (!helpers_come_soon_) {
    lock.unlock();
    poll_for(has_news_, true);
    lock.lock();
  }
  while (busy_ || !ending_) {
    const bool is_left = is_left_to_others(Clock::now());
    if (has_next() && !is_left) break;
    asleep_ = queue_.empty() && !is_left && !ending_;
    if (asleep_) {
      lock.wait(arrived_, [this]() CCOM_REQUIRES(mutex_) { return !asleep_; });
    } else {
      (void)lock.wait_for(arrived_, kSoon, [this]() CCOM_REQUIRES(mutex_) { return ending_; });
    }
  }
  has_news_.store(ending_, std::memory_order_relaxed);
  return has_next();
}

}  // namespace ccom
