// SPDX-License-Identifier: Apache-2.0
//
// The thread that drives messages which nobody waits for.
#include "messages/messages.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <system_error>

#include "base/log.h"

namespace ccom {
namespace {

// Between two looks: at messages that may be left alone; while somebody else drives, more and more.
constexpr std::chrono::nanoseconds kTick = std::chrono::microseconds(500);
constexpr std::chrono::nanoseconds kLongestTick = std::chrono::milliseconds(100);
// Without any message, before it sleeps for good.
constexpr int kQuietTicks = 20;

}  // namespace

struct Messages::Round {
  uint64_t drives = 0;  // when it last looked
  std::chrono::nanoseconds tick = kTick;
  int quiet = 0;
};

void Messages::watch() {
  if (is_watching_.load(std::memory_order_seq_cst)) return;
  const std::lock_guard lock(thread_mutex_);
  if (is_closing_.load(std::memory_order_seq_cst)) return;
  is_watching_.store(true, std::memory_order_seq_cst);
  thread_wanted_.notify_all();
  if (!thread_.joinable()) start_thread();
}

// The program's signals are for its own threads.
void Messages::start_thread() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run_background(); });
    ::pthread_setname_np(thread_.native_handle(), "ccom-messages");
  } catch (const std::system_error& refused) {
    log(LogLevel::Warn, "no thread for messages, they move only while somebody waits: %s", refused.what());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Messages::rouse() {
  const std::lock_guard lock(thread_mutex_);
  is_roused_ = true;
  thread_wanted_.notify_all();
}

void Messages::run_background() {
  const auto is_over = [this] { return open_.load(std::memory_order_seq_cst) == 0; };
  Round round;
  std::unique_lock lock(thread_mutex_);
  while (rest(lock, round)) {
    // Messages that nobody has looked at since the last time are left alone.
    const uint64_t drives = drives_.load(std::memory_order_relaxed);
    const bool are_alone = std::exchange(round.drives, drives) == drives || has_due_.load(std::memory_order_seq_cst);
    if (is_over() || !are_alone) continue;
    lock.unlock();
    while (!is_over() && !is_closing_.load(std::memory_order_seq_cst) && !progress_lock_.is_wanted() && try_lock_progress()) {
      drive(nullptr, std::nullopt);
      unlock_progress(Calls::Now);
    }
    lock.lock();
  }
}

// False if it is to end.
bool Messages::rest(std::unique_lock<std::mutex>& lock, Round& round) {
  const auto is_closing = [this] { return is_closing_.load(std::memory_order_seq_cst); };
  const auto is_idle = [this] { return open_.load(std::memory_order_seq_cst) == 0; };
  round.quiet = is_idle() ? round.quiet + 1 : 0;
  if (round.quiet > kQuietTicks) {
    is_watching_.store(false, std::memory_order_seq_cst);
    // Either we see the message, or who has posted it sees that nobody watches.
    thread_wanted_.wait(lock,
                        [&] { return !is_idle() || is_watching_.load(std::memory_order_seq_cst) || is_closing(); });
    is_watching_.store(true, std::memory_order_seq_cst);
    round = {};
  }
  const bool is_long = progress_lock_.is_taken() && round.drives == drives_.load(std::memory_order_relaxed);
  round.tick = is_long ? std::min(2 * round.tick, kLongestTick) : kTick;
  thread_wanted_.wait_for(lock, round.tick, [&] { return is_roused_ || is_closing(); });
  is_roused_ = false;
  return !is_closing();
}

void Messages::end_background() {
  {
    const std::lock_guard lock(thread_mutex_);
    thread_wanted_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace ccom
