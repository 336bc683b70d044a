// SPDX-License-Identifier: Apache-2.0
//
// Turns on a communicator: calls run one at a time, in the order in which tickets were taken, until that order ends.
//
// One word holds both counters, so that taking and passing are one atomic operation each and each sees the other: who
// takes a ticket while nobody has a turn runs at once, who passes while nobody has a ticket need not look for waiters.
// Nobody else around: two atomic operations, no lock, no system call.
//
// The order ends when the communicator has failed: no call does anything any more, so none has to wait for those before
// it, which may be queued behind anything. Then holders of tickets leave in any order, and only who needs everything
// before it to be over waits for that.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "base/time.h"

namespace ccom {

// Thread-safe. May be destroyed by the holder of the last ticket as soon as its wait_for_all() is over.
class Turns {
 public:
  struct Ticket {
    uint32_t number = 0;
    bool is_first = false;  // nobody had a turn when it was taken
  };

  Turns() = default;
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;
  ~Turns() { const Lock lock(mutex_); }  // whoever left last has let go of it

  // To be given to pass(), if its turn has come, or to leave().
  Ticket take() {
    const uint64_t before = state_.fetch_add(kTake, std::memory_order_acq_rel);
    const auto number = static_cast<uint32_t>(before >> 32);
    return {number, number == static_cast<uint32_t>(before)};
  }

  // Blocks until it is the ticket's turn; false if the order ends before, or the deadline comes first.
  bool wait(Ticket& ticket, std::optional<Deadline> deadline = std::nullopt) {
    return ticket.is_first || wait_in_line(ticket, deadline);
  }
  // How many turns are over; wraps around.
  uint32_t served() const { return static_cast<uint32_t>(state_.load(std::memory_order_acquire)); }
  // Blocks until all tickets that were taken before are passed or left, whatever happens. It is the ticket's turn then.
  void wait_for_all(Ticket& ticket);

  void pass(Ticket ticket) {
    const uint32_t next = ticket.number + 1;
    const uint64_t before = state_.fetch_add(served(ticket.number, 1), std::memory_order_acq_rel);
    if (static_cast<uint32_t>(before >> 32) != next) hand_over();
  }
  // Ends the order: this ticket's turn is not waited for.
  void leave(Ticket ticket);
  // Ends the order: nobody waits for a turn any longer.
  void end_order();

 private:
  static constexpr uint64_t kTake = uint64_t{1} << 32;
  // What to add to the state if `count` more are served. The served half may not carry into the other one.
  static uint64_t served(uint32_t before, uint32_t count) {
    return before + count < before ? uint64_t{count} - kTake : count;
  }
  bool wait_in_line(Ticket& ticket, std::optional<Deadline> deadline);
  bool claim(Ticket& ticket) CCOM_REQUIRES(mutex_);
  void hand_over();
  void count_left() CCOM_REQUIRES(mutex_);

  std::atomic<uint64_t> state_{0};  // tickets taken << 32 | served: passed, or left and counted
  Mutex mutex_;
  std::condition_variable changed_;
  bool is_free_ CCOM_GUARDED_BY(mutex_) = false;  // a turn was passed to those who wait, and nobody has claimed it
  bool has_ended_ CCOM_GUARDED_BY(mutex_) = false;
  uint32_t left_ CCOM_GUARDED_BY(mutex_) = 0;  // and not yet counted as served: that is for nobody's turn
};

}  // namespace ccom
