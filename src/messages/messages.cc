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
constexpr std::chrono::nanoseconds kSelfNap{500000};

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
  // Within a `done` whoever calls it goes on afterwards: else a chain of messages would be a chain of calls.
  if (!is_within_done()) turn();
  if (!message->is_complete()) watch();
  return {};
}

bool Messages::test(const Message& message) {
  if (!message.is_complete() && !is_within_done()) turn();
  return message.is_complete();
}

bool Messages::wait(const Message& message, std::optional<Deadline> deadline) {
  const auto is_over = [&message] { return message.is_complete(); };
  bool in_time = true;
  while (in_time && !is_over()) {
    if (helm_.try_take()) {
      in_time = drive(&message, deadline);
      release_helm();
    } else {
      in_time = helm_.await(deadline, is_over, [this] { nudge(); });
    }
  }
  if (has_inbox_.load(std::memory_order_seq_cst) && !is_within_done()) turn();
  return is_over();
}

// One look at everything, by whoever passes by.
void Messages::turn() {
  do {
    if (!helm_.try_take()) return nudge();
    drives_.fetch_add(1, std::memory_order_relaxed);
    step();
    release_helm();
  } while (has_inbox_.load(std::memory_order_seq_cst));
}

// Who has the helm may sleep without knowing that there is work, or that it is wanted.
void Messages::nudge() {
  if (is_asleep_.load(std::memory_order_seq_cst)) protocol_.wake();
}

void Messages::wake() {
  protocol_.wake();
  rouse();
}

// ---- Driving, under the helm ----------------------------------------------------------------------------------------

// Until the message is complete, or, without one, all are: true; or the time is up: false. Also ends, with true, when
// `done` must be called, and when somebody else should go on.
bool Messages::drive(const Message* awaited, std::optional<Deadline> deadline) {
  drives_.fetch_add(1, std::memory_order_relaxed);
  constexpr unsigned kRoundsPerClock = 64;
  unsigned rounds = 0;
  Backoff backoff(awaited != nullptr ? policy_ : kSleepAtOnce);
  while (true) {
    const bool has_moved = step();
    const bool must_call =
        std::ranges::any_of(served_, [](const auto& message) { return message->asked.done != nullptr; });
    if (must_call || is_relieved(awaited)) return true;
    if (has_moved) {
      backoff.reset();
      // Progress is no reason to stay beyond a deadline.
      if (++rounds % kRoundsPerClock != 0) continue;
      const auto now = Clock::now();
      if (!look(now)) continue;
      if (deadline && now >= deadline->when()) return false;
    } else if (backoff.step() == Backoff::Next::Block) {
      if (deadline && backoff.now() >= deadline->when()) return false;
      if (!look(backoff.now())) continue;
      const auto slice = backoff.slice();
      nap(awaited, deadline ? std::min(slice, deadline->left()) : slice);
    }
  }
}

// Nothing is left to do for this driver.
bool Messages::is_relieved(const Message* awaited) const {
  if (is_closing_.load(std::memory_order_seq_cst)) return true;
  if (awaited != nullptr) return awaited->is_complete();
  return helm_.is_wanted() || open_.load(std::memory_order_seq_cst) == 0;
}

// What is asked for, and what can be moved. True if something has happened.
bool Messages::step() {
  bool has_moved = false;
  if (!has_failed_) {
    Status status = monitor_.failed() ? monitor_.status() : serve_inbox();
    if (status.is_ok()) status = protocol_.move(has_moved);
    if (!status.is_ok()) fail(status);
  }
  if (!protocol_.has_finished()) return has_moved;
  Finished finished = protocol_.take_finished();
  open_.fetch_sub(finished.size(), std::memory_order_seq_cst);
  std::ranges::move(finished, std::back_inserter(served_));
  helm_.tell();
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

// ---- The helm -------------------------------------------------------------------------------------------------------

void Messages::release_helm() {
  const Finished finished = std::exchange(served_, {});
  const bool was_long = std::exchange(was_long_, false);
  if (!finished.empty()) calling_.fetch_add(1, std::memory_order_seq_cst);
  helm_.release();
  // After a long drive our thread looks rarely.
  if (was_long && open_.load(std::memory_order_seq_cst) > 0 && !helm_.is_wanted()) {
    rouse();
  }
  if (finished.empty()) return;
  call_done(finished);
  calling_.fetch_sub(1, std::memory_order_seq_cst);
  helm_.tell();
}

void Messages::call_done(const Finished& finished) {
  ++done_depth;
  for (const auto& message : finished) {
    if (message->asked.done != nullptr) message->asked.done(message->status().code(), message->peer());
  }
  --done_depth;
}

void Messages::take_helm() {
  while (!helm_.try_take()) {
    helm_.await(
        std::nullopt, [] { return false; }, [this] { protocol_.wake(); });
  }
}

Messages::Usage Messages::usage() {
  take_helm();
  Usage usage{protocol_.bytes_sent_to(), protocol_.memory_bytes()};
  release_helm();
  return usage;
}

void Messages::close() {
  is_closing_.store(true, std::memory_order_seq_cst);
  wake();
  take_helm();
  if (!has_failed_)
    end_all(error(Code::Aborted, "this rank destroyed the communicator before the message was complete"));
  step();
  calling_.fetch_add(1, std::memory_order_seq_cst);
  call_done(std::exchange(served_, {}));
  calling_.fetch_sub(1, std::memory_order_seq_cst);
  end_background();
  helm_.await(
      std::nullopt, [this] { return calling_.load(std::memory_order_seq_cst) == 0; }, [] {});
}

}  // namespace ccom
