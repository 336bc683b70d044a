// SPDX-License-Identifier: Apache-2.0
#include "comm/turns.h"

#include <thread>
#include <utility>

namespace ccom {

bool Turns::take_bias() {
  uintptr_t nobody_yet = kNobodyYet;
  return bias_.compare_exchange_strong(nobody_yet, this_thread(), std::memory_order_acq_rel);
}

// Of the stores of the thread with the bias and this one's at least one is seen by the other side: either that one
// finds that the bias is revoked, or this thread finds what that one does.
void Turns::revoke_bias() {
  const Lock lock(mutex_);
  if (bias_.load(std::memory_order_acquire) == kNobody) return;
  bias_.store(kSoonNobody, std::memory_order_relaxed);  // others wait for the mutex
  kFence.heavy();
  Phase phase = phase_.load(std::memory_order_acquire);
  for (; phase == Phase::Leaving; phase = phase_.load(std::memory_order_acquire)) std::this_thread::yield();
  if (phase != Phase::Out) {
    const uint64_t before = state_.fetch_add(kTake, std::memory_order_acq_rel);
    instead_ = static_cast<uint32_t>(before >> 32);
  }
  bias_.store(kNobody, std::memory_order_release);
}

Turns::Ticket Turns::take_for_any() {
  if (bias_.load(std::memory_order_acquire) != kNobody) [[unlikely]]
    revoke_bias();
  const uint64_t before = state_.fetch_add(kTake, std::memory_order_acq_rel);
  const auto number = static_cast<uint32_t>(before >> 32);
  return {.number = number, .is_first = number == static_cast<uint32_t>(before)};
}

void Turns::pass_on(Ticket ticket) {
  const uint32_t next = ticket.number + 1;
  const uint64_t before = state_.fetch_add(served(ticket.number, 1), std::memory_order_acq_rel);
  if (static_cast<uint32_t>(before >> 32) != next) hand_over();
}

// The thread with the bias has said that it has a turn, and finds the bias revoked.
Turns::Ticket Turns::take_after_revocation() {
  {
    const Lock lock(mutex_);  // until it is known whether anybody has seen that
    phase_.store(Phase::Out, std::memory_order_relaxed);
    if (instead_) return {.number = *instead_, .is_first = true};
  }
  return take_for_any();
}

// Likewise, that it leaves.
Turns::Ticket Turns::ticket_instead() {
  phase_.store(Phase::WaitsForTicket, std::memory_order_release);
  const Lock lock(mutex_);
  return {.number = *instead_};
}

// As many as were taken before have been served. In order these are the ones before; after the end of the order they
// are if nobody has taken a ticket since, and otherwise the turn is at least nobody else's.
bool Turns::claim(Ticket& ticket) {
  const auto served = static_cast<uint32_t>(state_.load(std::memory_order_acquire));
  if (!is_free_ || static_cast<int32_t>(served - ticket.number) < 0) return false;
  is_free_ = false;
  ticket.number = served;
  return true;
}

bool Turns::wait_in_line(Ticket& ticket, std::optional<Deadline> deadline) {
  Lock lock(mutex_);
  bool is_mine = false;
  const auto is_over = [&]() CCOM_REQUIRES(mutex_) { return has_ended_ || (is_mine = claim(ticket)); };
  if (deadline) {
    lock.wait_until(changed_, deadline->when(), is_over);
  } else {
    lock.wait(changed_, is_over);
  }
  return is_mine;
}

void Turns::wait_for_all(Ticket& ticket) {
  if (ticket.is_first) return;
  Lock lock(mutex_);
  lock.wait(changed_, [&]() CCOM_REQUIRES(mutex_) { return claim(ticket); });
}

// Somebody took the next ticket while the passer had the turn, and waits, or is going to.
void Turns::hand_over() {
  const Lock lock(mutex_);
  is_free_ = true;
  count_left();
  changed_.notify_all();
}

void Turns::leave(Ticket ticket) {
  if (ticket.is_first) {
    end_order();
    pass(ticket);
    return;
  }
  const Lock lock(mutex_);
  has_ended_ = true;
  ++left_;
  count_left();
  changed_.notify_all();
}

void Turns::end_order() {
  const Lock lock(mutex_);
  has_ended_ = true;
  changed_.notify_all();
}

void Turns::count_left() {
  if (!is_free_) return;
  const auto served_before = static_cast<uint32_t>(state_.load(std::memory_order_acquire));
  const uint32_t served_now = served_before + std::exchange(left_, 0);
  const uint64_t before =
      state_.fetch_add(served(served_before, served_now - served_before), std::memory_order_acq_rel);
  is_free_ = static_cast<uint32_t>(before >> 32) != served_now;  // with nobody in line the next one runs at once
}

}  // namespace ccom
