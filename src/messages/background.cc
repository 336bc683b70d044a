// SPDX-License-Identifier: Apache-2.0
//
// The background thread, which drives messages that no thread waits for.
#include "messages/messages.h"

#include <algorithm>
#include <system_error>

#include "base/log.h"
#include "base/thread.h"

namespace ccom {
namespace {

// Polling interval: doubled while another thread holds the progress lock, up to kLongestTick.
constexpr std::chrono::nanoseconds kTick = std::chrono::microseconds(500);
constexpr std::chrono::nanoseconds kLongestTick = std::chrono::milliseconds(100);
// Ticks without an incomplete message before the thread sleeps without a timeout.
constexpr int kQuietTicks = 20;

}  // namespace

struct Messages::BackgroundTick {
  uint64_t drives = 0;  // value of drives_ at the last tick
  std::chrono::nanoseconds tick = kTick;
  int quiet = 0;
};

void Messages::watch() {
  if (is_watching_.load(std::memory_order_seq_cst)) return;
  const Lock lock(thread_mutex_);
  if (is_closing_.load(std::memory_order_seq_cst)) return;
  is_watching_.store(true, std::memory_order_seq_cst);
  thread_wanted_.notify_all();
  if (!thread_.joinable()) start_background();
}

void Messages::start_background() {
  const int refused = start_thread(thread_, "ccom-messages", [this] { run_background(); });
  if (refused == 0) return;
  log(LogLevel::Warn,
      "cannot start the messages thread; messages will progress only in ccomMessageWait and ccomMessageTest: %s",
      std::generic_category().message(refused).c_str());
}

void Messages::wake_background() {
  const Lock lock(thread_mutex_);
  is_woken_ = true;
  thread_wanted_.notify_all();
}

void Messages::run_background() {
  const auto is_over = [this] { return open_.load(std::memory_order_seq_cst) == 0; };
  BackgroundTick round;
  Lock lock(thread_mutex_);
  while (wait_for_tick(lock, round)) {
    // If nobody has driven the protocol since the last tick, this thread has to.
    const uint64_t drives = drives_.load(std::memory_order_relaxed);
    const bool are_alone = std::exchange(round.drives, drives) == drives || has_due_.load(std::memory_order_seq_cst);
    if (is_over() || !are_alone) continue;
    lock.unlock();
    while (!is_over() && !is_closing_.load(std::memory_order_seq_cst) && !progress_lock_.is_wanted() &&
           try_lock_progress()) {
      drive(nullptr, std::nullopt);
      unlock_progress(Calls::Now);
    }
    lock.lock();
  }
}

// Returns false when the thread has to end.
bool Messages::wait_for_tick(Lock& lock, BackgroundTick& round) {
  const auto is_closing = [this] { return is_closing_.load(std::memory_order_seq_cst); };
  const auto is_idle = [this] { return open_.load(std::memory_order_seq_cst) == 0; };
  round.quiet = is_idle() ? round.quiet + 1 : 0;
  if (round.quiet > kQuietTicks) {
    is_watching_.store(false, std::memory_order_seq_cst);
    // Either this thread sees the message, or the posting thread sees is_watching_ == false and wakes us.
    lock.wait(thread_wanted_,
              [&] { return !is_idle() || is_watching_.load(std::memory_order_seq_cst) || is_closing(); });
    is_watching_.store(true, std::memory_order_seq_cst);
    round = {};
  }
  const bool is_long = progress_lock_.is_taken() && round.drives == drives_.load(std::memory_order_relaxed);
  round.tick = is_long ? std::min(2 * round.tick, kLongestTick) : kTick;
  lock.wait_for(thread_wanted_, round.tick, [&]() CCOM_REQUIRES(thread_mutex_) { return is_woken_ || is_closing(); });
  is_woken_ = false;
  return !is_closing();
}

void Messages::end_background() {
  std::thread ending;
  {
    const Lock lock(thread_mutex_);
    thread_wanted_.notify_all();
    ending.swap(thread_);
  }
  if (ending.joinable()) ending.join();
}

}  // namespace ccom
