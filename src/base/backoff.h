// SPDX-License-Identifier: Apache-2.0
//
// How a waiting rank spends its time: poll, then yield, then block. The one piece that every wait is made of.
//
// A hand-over costs about 0.14 us to a spinning peer on another core, 0.8 us by sched_yield on the same core, and 33 us
// to a blocked one on an idle core. With a core per rank: spin briefly, then yield; with more ranks than cores spinning
// only keeps the peer from running: yield at once. Blocking comes last, in slices that grow, so that an idle rank costs
// nothing. Yielding costs a computing neighbour on the same core little: it gets the core for a whole slice of the
// scheduler, a few milliseconds, after which the time for yields is over.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/time.h"

namespace ccom {

struct WaitPolicy {
  std::chrono::nanoseconds spin{2000};
  std::chrono::nanoseconds yield{200000};
  uint32_t yields_per_clock = 4;  // a look costs a twentieth of a yield between ranks that hand a core round

  // ranks: on the host; cpus: that they may use, by affinity and control group quota.
  static WaitPolicy for_host(int ranks, int cpus) {
    WaitPolicy policy;
    if (ranks <= cpus) return policy;
    policy.spin = std::chrono::nanoseconds(0);
    // Others need the core before what we wait for can happen.
    policy.yield *= (ranks + cpus - 1) / cpus;
    return policy;
  }
};

// The clock and the processor; tests have others.
struct WaitSystem {
  static Clock::time_point now() { return Clock::now(); }
  static void yield() { ::sched_yield(); }
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
  }
};

// One wait. Belongs to one thread.
template <typename System>
class BasicBackoff {
 public:
  enum class Next { Poll, Block };

  explicit BasicBackoff(const WaitPolicy& policy) : policy_(policy), phase_(first_phase(policy)) {}

  // Call after progress: the wait begins anew.
  void reset() { *this = BasicBackoff(policy_); }

  // Call after a fruitless poll. Block: the caller blocks for about slice() before it polls again. The clock is read
  // only now and then: most waits are over before it is worth it.
  Next step() {
    if (phase_ == Phase::Spin) {
      System::pause();
      if (++polls_ % kPollsPerClock == 0 && elapsed() >= policy_.spin) phase_ = Phase::Yield;
      return Next::Poll;
    }
    if (phase_ == Phase::Yield) {
      System::yield();
      if (++polls_ % policy_.yields_per_clock == 0 && elapsed() >= policy_.spin + policy_.yield) phase_ = Phase::Block;
      return Next::Poll;
    }
    now_ = System::now();
    return Next::Block;
  }

  // The clock as last read by step().
  Clock::time_point now() const { return now_; }

  std::chrono::nanoseconds slice() {
    const auto current = slice_;
    slice_ = std::min(slice_ * 2, kLastSlice);
    return current;
  }

 private:
  enum class Phase : uint8_t { Spin, Yield, Block };
  static constexpr std::chrono::nanoseconds kFirstSlice{100000};
  static constexpr std::chrono::nanoseconds kLastSlice{5000000};  // bounds how late a dead peer is noticed
  static constexpr uint32_t kPollsPerClock = 16;

  static Phase first_phase(const WaitPolicy& policy) { return policy.spin.count() > 0 ? Phase::Spin : Phase::Yield; }

  // Since the first look at the clock.
  std::chrono::nanoseconds elapsed() {
    now_ = System::now();
    if (since_ == Clock::time_point{}) since_ = now_;
    return now_ - since_;
  }

  WaitPolicy policy_;
  Phase phase_;
  uint32_t polls_ = 0;
  Clock::time_point since_{}, now_{};
  std::chrono::nanoseconds slice_ = kFirstSlice;
};

using Backoff = BasicBackoff<WaitSystem>;

}  // namespace ccom
