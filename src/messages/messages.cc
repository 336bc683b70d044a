// SPDX-License-Identifier: Apache-2.0
#include "messages/messages.h"

#include <algorithm>

namespace ccom {
namespace {

// How long a lost peer waits for a better explanation: its own error may be on its way, and says more.
constexpr std::chrono::milliseconds kGrace{200};

// Of our own thread: it must not keep a computing one from its core.
constexpr WaitPolicy kSleepAtOnce{
    .spin = std::chrono::nanoseconds(0), .yield = std::chrono::nanoseconds(0), .yields_per_clock = 1};

// Between two looks where there is no transport to sleep in.
constexpr std::chrono::nanoseconds kSelfNap{2000000};

// Looks at clock and peers beside those before each sleep.
constexpr uint32_t kStepsPerLook = 64;
// Of our own thread, when nothing has moved for a second: what comes still wakes it.
constexpr int kQuietNaps = 200;
constexpr std::chrono::nanoseconds kQuietNap{20000000};

thread_local constinit int done_depth = 0;

}  // namespace

Messages::Messages(MessageRoutes routes, Monitor& monitor, WaitPolicy policy, Rename rename)
    : monitor_(monitor), policy_(policy), rename_(std::move(rename)), protocol_(std::move(routes)) {}

Messages::~Messages() { CCOM_ASSERT(!thread_.joinable()); }

Status Messages::open() { return protocol_.open(); }

bool Messages::is_within_done() { return done_depth > 0; }

// ---- Asking ---------------------------------------------------------------------------------------------------------

Status Messages::post(const std::shared_ptr<Message>& message) {
  {
    const std::lock_guard lock(inbox_mutex_);
    CCOM_TRY(Status(refusal_));
    inbox_.push_back(message);
    open_.fetch_add(1, std::memory_order_seq_cst);
    has_inbox_.store(true, std::memory_order_seq_cst);
  }
  // Within a `done` whoever calls it goes on afterwards.
  if (!is_within_done()) turn(Calls::Later);
  if (has_due_.load(std::memory_order_seq_cst) || !message->is_complete()) watch();
  return {};
}

bool Messages::test(const Message& message) {
  if (!message.is_complete() || has_due_.load(std::memory_order_seq_cst)) {
    turn(is_within_done() ? Calls::Later : Calls::Now);
  }
  return message.is_complete();
}

bool Messages::wait(const Message& message, std::optional<Deadline> deadline) {
  const auto is_over = [&message] { return message.is_complete(); };
  if (is_over() || (deadline && deadline->passed())) return test(message);
  bool in_time = true;
  while (in_time && !is_over()) {
    if (try_lock_progress()) {
      in_time = drive(&message, deadline);
      unlock_progress(Calls::Now);
    } else {
      if (claims_.load(std::memory_order_seq_cst) > 0) std::this_thread::yield();
      in_time = progress_lock_.await(deadline, is_over, [this] { nudge(); });
    }
  }
  if (has_inbox_.load(std::memory_order_seq_cst) && !is_within_done()) turn(Calls::Now);
  return is_over();
}

// One look at everything, by whoever passes by.
void Messages::turn(Calls calls) {
  do {
    if (!try_lock_progress()) return nudge();
    step();
    unlock_progress(calls);
  } while (has_inbox_.load(std::memory_order_seq_cst));
}

// Who holds the progress lock may sleep without knowing that there is work, or that it is wanted.
void Messages::nudge() {
  if (is_asleep_.load(std::memory_order_seq_cst)) protocol_.wake();
}

void Messages::wake() {
  protocol_.wake();
  rouse();
}

// ---- Driving, under the progress lock ----------------------------------------------------------------------------------------

// Until the message is complete, or, without one, all are: true; or the time is up: false. Also ends, with true, when
// `done` must be called, and when somebody else should go on.
bool Messages::drive(const Message* awaited, std::optional<Deadline> deadline) {
  uint32_t rounds = 0;
  int naps = 0;
  Backoff backoff(awaited != nullptr ? policy_ : kSleepAtOnce);
  while (true) {
    const bool has_moved = step();
    if (!due_.empty() || is_relieved(awaited)) return true;
    if (has_moved) {
      backoff.reset();
      naps = 0;
      // Progress is no reason to stay beyond a deadline.
      if (deadline && ++rounds % kStepsPerLook == 0 && deadline->passed()) return false;
    } else if (backoff.step() == Backoff::Next::Block) {
      if (deadline && backoff.now() >= deadline->when()) return false;
      if (!look(backoff.now())) continue;
      const bool is_quiet = awaited == nullptr && ++naps > kQuietNaps;
      const auto slice = is_quiet ? kQuietNap : backoff.slice();
      nap(awaited, deadline ? std::min(slice, deadline->left()) : slice);
    }
  }
}

// Nothing is left to do for this driver.
bool Messages::is_relieved(const Message* awaited) const {
  if (claims_.load(std::memory_order_seq_cst) > 0) return true;
  if (awaited != nullptr) return awaited->is_complete();
  return progress_lock_.is_wanted() || open_.load(std::memory_order_seq_cst) == 0;
}

// What is asked for, and what can be moved. True if something has happened.
bool Messages::step() {
  bool has_moved = false;
  if (!has_failed_) {
    Status status = monitor_.failed() ? monitor_.status() : serve_inbox();
    if (status.is_ok()) status = protocol_.move(has_moved);
    if (!status.is_ok()) {
      fail(status);
    } else if (++steps_ % kStepsPerLook == 0) {
      look(Clock::now());
    }
  }
  if (!protocol_.has_finished()) return has_moved;
  for (std::shared_ptr<Message>& message : protocol_.take_finished()) {
    if (message->asked.done != nullptr) {
      due_.push_back(std::move(message));
    } else {
      open_.fetch_sub(1, std::memory_order_seq_cst);
    }
  }
  progress_lock_.tell();
  return true;
}

// False if there was an error.
bool Messages::look(Clock::time_point now) {
  Status status = monitor_.check();
  if (status.is_ok()) status = protocol_.check_deadlines(now);
  if (status.is_ok()) return true;
  if (!has_failed_) fail(status);
  return false;
}

void Messages::nap(const Message* awaited, std::chrono::nanoseconds at_most) {
  was_long_ = true;
  is_asleep_.store(true, std::memory_order_seq_cst);
  const bool stays_awake = has_inbox_.load(std::memory_order_seq_cst) || monitor_.failed() || is_relieved(awaited);
  // Nothing to sleep on: only messages of this rank to itself.
  if (!stays_awake && !protocol_.wait(at_most)) std::this_thread::sleep_for(std::min(at_most, kSelfNap));
  is_asleep_.store(false, std::memory_order_seq_cst);
}

Status Messages::serve_inbox() {
  if (!has_inbox_.load(std::memory_order_seq_cst)) return {};
  std::vector<std::shared_ptr<Message>> asked;
  {
    const std::lock_guard lock(inbox_mutex_);
    asked.swap(inbox_);
    has_inbox_.store(false, std::memory_order_seq_cst);
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    Status status = protocol_.accept(asked[i]);
    if (status.is_ok()) continue;
    const std::lock_guard lock(inbox_mutex_);  // the rest ends as all do
    inbox_.insert(inbox_.begin(), asked.begin() + static_cast<std::ptrdiff_t>(i) + 1, asked.end());
    return status;
  }
  return {};
}

// Reports the cause, and ends all with the error that all ranks agree on.
void Messages::fail(const Status& cause) {
  if (cause.code() == Code::RemoteError && !monitor_.failed()) {
    const Deadline grace = Deadline::after(kGrace);
    while (!grace.passed() && monitor_.check().is_ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  end_all(rename_(monitor_.report(cause)));
}

void Messages::end_all(const Status& status) {
  has_failed_ = true;
  std::vector<std::shared_ptr<Message>> asked;
  {
    const std::lock_guard lock(inbox_mutex_);
    if (refusal_.is_ok()) refusal_ = status;
    asked.swap(inbox_);
    has_inbox_.store(false, std::memory_order_seq_cst);
  }
  for (const auto& message : asked) protocol_.refuse(message, status);
  protocol_.fail(status);
}

// ---- The progress lock -------------------------------------------------------------------------------------------------------

bool Messages::try_lock_progress() {
  if (claims_.load(std::memory_order_seq_cst) > 0 || !progress_lock_.try_take()) return false;
  drives_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Messages::unlock_progress(Calls calls) {
  const Due due = calls == Calls::Now ? std::exchange(due_, {}) : Due();
  const bool was_long = std::exchange(was_long_, false);
  has_due_.store(!due_.empty(), std::memory_order_seq_cst);
  if (!due.empty()) calling_.fetch_add(1, std::memory_order_seq_cst);
  open_.fetch_sub(due.size(), std::memory_order_seq_cst);
  progress_lock_.release();
  // After a long drive our thread looks rarely.
  if (was_long && open_.load(std::memory_order_seq_cst) > 0 && !progress_lock_.is_wanted()) rouse();
  if (!due.empty()) call_done(due);
}

// Counted in calling_.
void Messages::call_done(const Due& due) {
  ++done_depth;
  for (const auto& message : due) message->asked.done(message->status().code(), message->peer());
  --done_depth;
  calling_.fetch_sub(1, std::memory_order_seq_cst);
  progress_lock_.tell();
}

// Whoever drives leaves, and nobody else begins to.
void Messages::lock_progress() {
  claims_.fetch_add(1, std::memory_order_seq_cst);
  while (!progress_lock_.try_take()) {
    progress_lock_.await(
        std::nullopt, [] { return false; }, [this] { protocol_.wake(); });
  }
}

Messages::Usage Messages::usage() {
  lock_progress();
  Usage usage{protocol_.bytes_sent_to(), protocol_.memory_bytes()};
  claims_.fetch_sub(1, std::memory_order_seq_cst);
  unlock_progress(Calls::Later);
  return usage;
}

void Messages::close() {
  is_closing_.store(true, std::memory_order_seq_cst);
  wake();
  lock_progress();
  if (!has_failed_)
    end_all(error(Code::Aborted, "this rank destroyed the communicator before the message was complete"));
  step();
  calling_.fetch_add(1, std::memory_order_seq_cst);
  call_done(std::exchange(due_, {}));
  end_background();
  progress_lock_.await(
      std::nullopt, [this] { return calling_.load(std::memory_order_seq_cst) == 0; }, [] {});
}

}  // namespace ccom
