// SPDX-License-Identifier: Apache-2.0
//
// Turns on a communicator: calls run one at a time, in the order in which tickets were taken, until that order ends.
//
// One word holds both counters, so that taking and passing are one atomic operation each and each sees the other: who
// takes a ticket while nobody has a turn runs at once, who passes while nobody has a ticket need not look for waiters.
// Nobody else around: two atomic operations, no lock, no system call.
//
// They are biased towards the first thread that takes a turn, as biased locks are: as long as no other one does, and it
// has one turn at a time, its turns have no tickets and need no atomic operation, only stores that an asymmetric fence
// (node/fences.h) orders. Whoever else wants a ticket revokes the bias for good, and gives the turn that is under way,
// if there is one, the first ticket.
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
#include "node/fences.h"

namespace ccom {

// Thread-safe. May be destroyed by the holder of the last ticket as soon as its wait_for_all() is over.
class Turns {
 public:
  struct Ticket {
    uint32_t number = 0;
    bool is_first = false;  // nobody had a turn when it was taken
    bool has_bias = false;  // it has no number
  };

  Turns() = default;
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;
  ~Turns() { const Lock lock(mutex_); }  // whoever left last has let go of it

  // To be given to pass(), if its turn has come, or to leave(); in this thread.
  [[gnu::always_inline]] Ticket take() {
    const uintptr_t bias = bias_.load(std::memory_order_relaxed);
    if (bias != this_thread() && (bias != kNobodyYet || !take_bias())) [[unlikely]]
      return take_for_any();
    if (phase_.load(std::memory_order_relaxed) != Phase::Out) [[unlikely]]  // one turn at a time
      return take_for_any();
    phase_.store(Phase::In, std::memory_order_relaxed);
    kFence.light();
    if (!is_biased()) [[unlikely]]
      return take_after_revocation();
    return {.is_first = true, .has_bias = true};
  }
  // The same in any thread.
  Ticket take_for_any();

  // Blocks until it is the ticket's turn; false if the order ends before, or the deadline comes first.
  bool wait(Ticket& ticket, std::optional<Deadline> deadline = std::nullopt) {
    return ticket.is_first || wait_in_line(ticket, deadline);
  }
  // How many turns are over; wraps around.
  uint32_t served() const { return static_cast<uint32_t>(state_.load(std::memory_order_acquire)); }
  // Blocks until all tickets that were taken before are passed or left, whatever happens. It is the ticket's turn then.
  void wait_for_all(Ticket& ticket);

  [[gnu::always_inline]] void pass(Ticket ticket) {
    if (ticket.has_bias) [[likely]] {
      phase_.store(Phase::Leaving, std::memory_order_release);
      kFence.light();
      if (is_biased()) [[likely]]  // and another thread may destroy this object as soon as the phase is known
        return phase_.store(Phase::Out, std::memory_order_release);
      ticket = ticket_instead();
    }
    pass_on(ticket);
  }
  // Ends the order: this ticket's turn is not waited for.
  void leave(Ticket ticket);
  // Ends the order: nobody waits for a turn any longer.
  void end_order();

 private:
  // Values of bias_, besides threads.
  static constexpr uintptr_t kNobody = 0, kNobodyYet = 1, kSoonNobody = 2;
  // What the thread with the bias does, by its own stores: Leaving until it has seen whether it still is.
  enum class Phase : uint32_t { Out, In, Leaving, WaitsForTicket };
  static uintptr_t this_thread() { return reinterpret_cast<uintptr_t>(__builtin_thread_pointer()); }
  bool is_biased() const { return bias_.load(std::memory_order_relaxed) > kSoonNobody; }
  bool take_bias();
  void revoke_bias();
  Ticket take_after_revocation();
  Ticket ticket_instead();
  void pass_on(Ticket ticket);

  static constexpr uint64_t kTake = uint64_t{1} << 32;
  // What to add to the state if `count` more are served. The served half may not carry into the other one.
  static uint64_t served(uint32_t before, uint32_t count) {
    return before + count < before ? uint64_t{count} - kTake : count;
  }
  bool wait_in_line(Ticket& ticket, std::optional<Deadline> deadline);
  bool claim(Ticket& ticket) CCOM_REQUIRES(mutex_);
  void hand_over();
  void count_left() CCOM_REQUIRES(mutex_);

  static constexpr AsymmetricFence kFence{true};  // used only where it is available
  std::atomic<uintptr_t> bias_{AsymmetricFence::available() ? kNobodyYet : kNobody};
  std::atomic<Phase> phase_{Phase::Out};
  std::atomic<uint64_t> state_{0};  // tickets taken << 32 | served: passed, or left and counted
  Mutex mutex_;
  // Of the turn that was under way when the bias was revoked.
  std::optional<uint32_t> instead_ CCOM_GUARDED_BY(mutex_);
  std::condition_variable changed_;
  bool is_free_ CCOM_GUARDED_BY(mutex_) = false;  // a turn was passed to those who wait, and nobody has claimed it
  bool has_ended_ CCOM_GUARDED_BY(mutex_) = false;
  uint32_t left_ CCOM_GUARDED_BY(mutex_) = 0;  // and not yet counted as served: that is for nobody's turn
};

}  // namespace ccom
