// SPDX-License-Identifier: Apache-2.0
#include "messages/messages.h"

#include <algorithm>
#include <new>

#include "liveness/lost_peer.h"

namespace ccom {
namespace {

// For the background thread, which must not take a core from a computing thread.
constexpr WaitPolicy kSleepAtOnce{
    .spin = std::chrono::nanoseconds(0), .yield = std::chrono::nanoseconds(0), .yields_per_clock = 1};

// Polling interval when no transport is in use (messages to self).
constexpr std::chrono::nanoseconds kSelfSlice{2000000};

// Steps between checks of the clock and of peers while progress is made; before each sleep both are checked anyway.
constexpr uint32_t kStepsPerCheck = 64;
// Background thread: after a second without progress it sleeps in longer slices; incoming data still wakes it.
constexpr int kQuietSleeps = 200;
constexpr std::chrono::nanoseconds kQuietSlice{20000000};
// And while there is nothing but others' messages that may have to be forwarded.
constexpr std::chrono::nanoseconds kIdleSlice{200000000};

thread_local constinit int done_depth = 0;

// What fn returns, or throws.
template <typename Fn>
Status caught(Rank rank, Fn fn) noexcept {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    return error(Code::OutOfMemory, "rank %d ran out of memory for messages", rank);
  } catch (const std::exception& exception) {
    return error(Code::InternalError, "rank %d: messages: %s", rank, exception.what());
  }
}

}  // namespace

Messages::Messages(MessageRoutes routes, Monitor& monitor, WaitPolicy policy, Rename rename)
    : monitor_(monitor), policy_(policy), rename_(std::move(rename)), protocol_(std::move(routes)) {}

Messages::~Messages() { CCOM_ASSERT(!thread_.joinable()); }

Status Messages::open() {
  CCOM_TRY(protocol_.open());
  if (!protocol_.forwards()) return {};
  open_.fetch_add(1, std::memory_order_seq_cst);
  watch();
  return {};
}

bool Messages::is_within_done() { return done_depth > 0; }

// ---- Posting and waiting --------------------------------------------------------------------------------------------

Status Messages::post(const std::shared_ptr<Message>& message) {
  MessageList posted;
  CCOM_TRY(caught(protocol_.rank(), [&]() -> Status {
    posted.push_back(message);
    return {};
  }));
  {
    const Lock lock(inbox_mutex_);
    CCOM_TRY(Status(refusal_));
    inbox_.splice(inbox_.end(), posted);
    open_.fetch_add(1, std::memory_order_seq_cst);
    if (MessageActivity* const activity = monitor_.message_activity(); activity != nullptr) activity->begin();
    has_inbox_.store(true, std::memory_order_seq_cst);
  }
  // Within a callback the thread that runs it makes progress afterwards.
  if (!is_within_done()) step_once(Calls::Later);
  if (has_due_.load(std::memory_order_seq_cst) || !message->is_complete()) watch();
  return {};
}

bool Messages::test(const Message& message) {
  if (!message.is_complete() || has_due_.load(std::memory_order_seq_cst)) {
    step_once(is_within_done() ? Calls::Later : Calls::Now);
  }
  return message.is_complete();
}

bool Messages::wait(const Message& message, std::optional<Deadline> deadline, CallSite site) {
  const auto is_over = [&message] { return message.is_complete(); };
  if (is_over() || (deadline && deadline->passed())) return test(message);
  waiting_.fetch_add(1, std::memory_order_seq_cst);
  if (!is_over()) wait_noted(message, deadline, site);  // and so close() has not returned
  waiting_.fetch_sub(1, std::memory_order_seq_cst);
  if (has_inbox_.load(std::memory_order_seq_cst) && !is_within_done()) step_once(Calls::Now);
  return is_over();
}

void Messages::wait_noted(const Message& message, std::optional<Deadline> deadline, CallSite site) {
  const auto is_over = [&message] { return message.is_complete(); };
  MessageActivity::Wait noted(monitor_.message_activity(), message.own_end(), site, message.waited);
  bool in_time = true;
  while (in_time && !is_over()) {
    if (try_lock_progress()) {
      in_time = drive(&message, deadline, &noted);
      unlock_progress(Calls::Now);
    } else {
      if (claims_.load(std::memory_order_seq_cst) > 0) std::this_thread::yield();
      if (!noted.is_noted()) noted.note(Clock::now());
      in_time = progress_lock_.await(deadline, is_over, [this] { wake_driver(); });
    }
  }
  if (is_over()) noted.complete(message.peer());
}

// One progress step, if the lock is free.
void Messages::step_once(Calls calls) {
  do {
    if (!try_lock_progress()) return wake_driver();
    step();
    unlock_progress(calls);
  } while (has_inbox_.load(std::memory_order_seq_cst));
}

// The holder of the progress lock may be asleep, unaware of new work or of a waiter. It may also be gone by now, and
// its transports soon after close(), which waits for whoever wakes.
void Messages::wake_driver() {
  waking_.fetch_add(1, std::memory_order_seq_cst);
  if (is_asleep_.load(std::memory_order_seq_cst)) protocol_.wake();
  waking_.fetch_sub(1, std::memory_order_seq_cst);
}

void Messages::wake() {
  protocol_.wake();
  wake_background();
}

// ---- Progress, under the progress lock ------------------------------------------------------------------------------

// Makes progress until `awaited` (null: every message) is complete; false on timeout. Also returns true when callbacks
// are due and when another thread should take over.
bool Messages::drive(const Message* awaited, std::optional<Deadline> deadline, MessageActivity::Wait* wait) noexcept {
  uint32_t rounds = 0;
  int sleeps = 0;
  Backoff backoff(awaited != nullptr ? policy_ : kSleepAtOnce);
  while (true) {
    const bool has_progressed = step();
    if (!due_.empty() || can_stop(awaited)) return true;
    if (has_progressed) {
      backoff.reset();
      sleeps = 0;
      // Steady progress must not delay the timeout.
      if (deadline && ++rounds % kStepsPerCheck == 0 && deadline->passed()) return false;
      continue;
    }
    const Backoff::Next next = backoff.step();
    if (wait != nullptr && backoff.has_lasted()) wait->note(backoff.since());
    if (next == Backoff::Next::Block) {
      if (wait != nullptr) wait->note(backoff.now());
      if (deadline && backoff.now() >= deadline->when()) return false;
      if (!check(backoff.now())) continue;
      const bool is_quiet = awaited == nullptr && ++sleeps > kQuietSleeps;
      const bool is_idle = is_quiet && protocol_.forwards() && open_.load(std::memory_order_seq_cst) == 1;
      const auto slice = is_idle ? kIdleSlice : is_quiet ? kQuietSlice : backoff.slice();
      sleep(awaited, deadline ? std::min(slice, deadline->left()) : slice);
    }
  }
}

// Whether this thread can stop driving.
bool Messages::can_stop(const Message* awaited) const {
  if (claims_.load(std::memory_order_seq_cst) > 0) return true;
  if (awaited != nullptr) return awaited->is_complete();
  return progress_lock_.is_wanted() || open_.load(std::memory_order_seq_cst) == 0;
}

// Takes new requests and progresses the transports. True if anything has happened.
bool Messages::step() noexcept {
  bool has_progressed = false;
  if (!has_failed_) {
    const Status status = caught(protocol_.rank(), [&] { return advance(has_progressed); });
    if (!status.is_ok()) {
      fail(status);
    } else if (++steps_ % kStepsPerCheck == 0) {
      check(Clock::now());
    }
  }
  if (!protocol_.has_finished()) return has_progressed;
  MessageList finished = protocol_.take_finished();
  MessageActivity* const activity = monitor_.message_activity();
  while (!finished.empty()) {
    if (activity != nullptr) activity->end(finished.front()->request.bytes);
    if (finished.front()->request.done != nullptr) {
      due_.splice(due_.end(), finished, finished.begin());
    } else {
      finished.pop_front();
      open_.fetch_sub(1, std::memory_order_seq_cst);
    }
  }
  progress_lock_.notify();
  return true;
}

Status Messages::advance(bool& has_progressed) {
  if (monitor_.failed()) return monitor_.status();
  CCOM_TRY(accept_inbox());
  return protocol_.progress(has_progressed);
}

// Returns false after an error.
bool Messages::check(Clock::time_point now) noexcept {
  const Status status = caught(protocol_.rank(), [&] {
    CCOM_TRY(monitor_.check());
    return protocol_.check_deadlines(now);
  });
  if (status.is_ok()) return true;
  if (!has_failed_) fail(status);
  return false;
}

void Messages::sleep(const Message* awaited, std::chrono::nanoseconds at_most) noexcept {
  has_slept_ = true;
  is_asleep_.store(true, std::memory_order_seq_cst);
  const bool stays_awake = has_inbox_.load(std::memory_order_seq_cst) || monitor_.failed() || can_stop(awaited);
  // Without a transport to sleep in there are only messages of this rank to itself.
  const Status status = caught(protocol_.rank(), [&]() -> Status {
    if (!stays_awake && !protocol_.wait(at_most)) std::this_thread::sleep_for(std::min(at_most, kSelfSlice));
    return {};
  });
  is_asleep_.store(false, std::memory_order_seq_cst);
  if (!status.is_ok() && !has_failed_) fail(status);
}

Status Messages::accept_inbox() {
  if (!has_inbox_.load(std::memory_order_seq_cst)) return {};
  {
    const Lock lock(inbox_mutex_);
    requests_.splice(requests_.end(), inbox_);
    has_inbox_.store(false, std::memory_order_seq_cst);
  }
  while (!requests_.empty()) CCOM_TRY(protocol_.accept_front(requests_));  // after an error end_all() fails the others
  return {};
}

void Messages::fail(const Status& cause) noexcept { end_all(agree_on(cause)); }

// Reports the cause. Returns the error that all ranks agree on.
Status Messages::agree_on(const Status& cause) noexcept {
  const Rank rank = protocol_.rank();
  Status in_force = caught(rank, [&] { return monitor_.report(explain_loss(monitor_, cause)); });
  // Without memory even for that, the board says that a rank ran out of memory.
  if (!monitor_.failed()) in_force = caught(rank, [&] { return monitor_.report(out_of_memory()); });
  const size_t others = protocol_.forwards() ? 1 : 0;
  const bool ends_message = open_.load(std::memory_order_seq_cst) > others;
  Status renamed = caught(rank, [&] { return rename_(in_force, ends_message); });
  return renamed.code() == in_force.code() ? renamed : in_force;
}

void Messages::end_all(const Status& status) noexcept {
  has_failed_ = true;
  {
    const Lock lock(inbox_mutex_);
    if (refusal_.is_ok()) refusal_ = status;
    requests_.splice(requests_.end(), inbox_);
    has_inbox_.store(false, std::memory_order_seq_cst);
  }
  protocol_.refuse(requests_, status);
  protocol_.fail(status);
}

// ---- The progress lock ----------------------------------------------------------------------------------------------

bool Messages::try_lock_progress() {
  if (claims_.load(std::memory_order_seq_cst) > 0 || !progress_lock_.try_take()) return false;
  drives_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Messages::unlock_progress(Calls calls) {
  const MessageList due = calls == Calls::Now ? std::exchange(due_, {}) : MessageList();
  const bool has_slept = std::exchange(has_slept_, false);
  has_due_.store(!due_.empty(), std::memory_order_seq_cst);
  if (!due.empty()) calling_.fetch_add(1, std::memory_order_seq_cst);
  open_.fetch_sub(due.size(), std::memory_order_seq_cst);
  progress_lock_.release();
  // While this thread slept in the transport, the background thread has lengthened its interval.
  if (has_slept && open_.load(std::memory_order_seq_cst) > 0 && !progress_lock_.is_wanted()) wake_background();
  if (!due.empty()) call_done(due);
}

// The caller has incremented calling_.
void Messages::call_done(const MessageList& due) {
  ++done_depth;
  for (const auto& message : due) message->request.done(message->status().code(), message->peer());
  --done_depth;
  calling_.fetch_sub(1, std::memory_order_seq_cst);
  progress_lock_.notify();
}

// Makes the current holder release the lock and keeps other threads from taking it.
void Messages::lock_progress() {
  claims_.fetch_add(1, std::memory_order_seq_cst);
  while (!progress_lock_.try_take()) {
    progress_lock_.await(
        std::nullopt, [] { return false; }, [this] { protocol_.wake(); });
  }
}

Messages::Usage Messages::usage() {
  Usage usage{std::vector<uint64_t>(protocol_.nranks()), 0};  // allocates before the lock is held
  lock_progress();
  protocol_.count_bytes_sent_to(usage.bytes_sent_to);
  usage.memory_bytes = protocol_.memory_bytes();
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
  while (waking_.load(std::memory_order_seq_cst) > 0 || waiting_.load(std::memory_order_seq_cst) > 0)
    std::this_thread::yield();
}

}  // namespace ccom
