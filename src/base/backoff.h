// SPDX-License-Identifier: Apache-2.0
//
// The wait policy of a waiting rank: spin, then yield, then block. Used by every wait.
//
// A hand-over takes about 0.14 us to a spinning peer on another core, 0.8 us by sched_yield on the same core, and 33 us
// to a blocked peer on an idle core. With a core per rank: spin briefly, then yield. With more ranks than cores
// spinning only keeps the peer from running, so yield at once. Finally block, in growing slices, so that an idle rank
// uses no CPU. Yielding hardly slows a computing thread on the same core: it gets whole scheduler slices of a few
// milliseconds, after which the yield phase is over.
#pragma once

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/time.h"
#include "base/types.h"

namespace ccom {

struct WaitPolicy {
  std::chrono::nanoseconds spin{2000};
  std::chrono::nanoseconds yield{200000};
  // The longest part of it in which no other thread has run on this core. A yield reaches only threads of the caller's
  // own scheduling group (its session, or its control group): ranks that were started in groups of their own are
  // reached by sleeping.
  std::chrono::nanoseconds lone_yield{200000};
  std::chrono::nanoseconds last_slice{5000000};  // bounds how late a dead peer is detected
  const Interrupted* asked = nullptr;            // with each look at the clock once spinning is over; see ask_often()
  uint32_t yields_per_clock = 4;  // between ranks that share a core, a clock read costs a twentieth of a yield

  // For who keeps something else going while it waits: `interrupted`, which outlives the policy, is called every
  // microsecond or so. What it returns counts where it is asked seldom (Monitor::check).
  void ask_often(const Interrupted& interrupted) {
    asked = &interrupted;
    last_slice = std::chrono::nanoseconds(100000);
  }

  // ranks: on this host; cpus: available to them, by affinity and cgroup quota.
  static WaitPolicy for_host(int ranks, int cpus) {
    WaitPolicy policy;
    if (ranks <= cpus) return policy;
    policy.spin = std::chrono::nanoseconds(0);
    // Other threads need this core before the awaited event can happen.
    policy.yield *= (ranks + cpus - 1) / cpus;
    policy.lone_yield = std::chrono::nanoseconds(10000);
    return policy;
  }
};

// Clock and processor; replaced in tests.
struct WaitSystem {
  static Clock::time_point now() { return Clock::now(); }
  static void yield() { ::sched_yield(); }
  // How often another thread has run on this one's core in its place.
  static long switches() {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
  }
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
  }
};

// State of one wait. Used by one thread.
template <typename System>
class BasicBackoff {
 public:
  enum class Next { Poll, Block };

  explicit BasicBackoff(const WaitPolicy& policy) : policy_(policy), phase_(first_phase(policy)) {}

  // Call after progress: restarts the wait.
  void reset() { *this = BasicBackoff(policy_); }

  // Call after a poll without result. Block: the caller should block for about slice() before the next poll. The clock
  // is read only every few calls, because most waits end before it matters.
  Next step() {
    if (phase_ == Phase::Spin) {
      System::pause();
      if (++polls_ % kPollsPerClock == 0 && elapsed() >= policy_.spin) phase_ = Phase::Yield;
      return Next::Poll;
    }
    if (phase_ == Phase::Yield) {
      System::yield();
      if (++polls_ % policy_.yields_per_clock == 0 && is_yielding_over()) phase_ = Phase::Block;
      return Next::Poll;
    }
    now_ = System::now();
    return Next::Block;
  }

  // When the clock was first read in this wait, if it was.
  bool has_lasted() const { return since_ != Clock::time_point{}; }
  Clock::time_point since() const { return since_; }
  // The clock as last read by step().
  Clock::time_point now() const { return now_; }

  std::chrono::nanoseconds slice() {
    const auto current = slice_;
    slice_ = std::min(slice_ * 2, policy_.last_slice);
    return current;
  }

 private:
  enum class Phase : uint8_t { Spin, Yield, Block };
  static constexpr std::chrono::nanoseconds kFirstSlice{100000};
  static constexpr uint32_t kPollsPerClock = 16;

  static Phase first_phase(const WaitPolicy& policy) { return policy.spin.count() > 0 ? Phase::Spin : Phase::Yield; }

  // Also when nobody else has run in this thread's place for so long. Waits that end soon never ask for that.
  bool is_yielding_over() {
    if (policy_.asked != nullptr) (*policy_.asked)();
    if (elapsed() >= policy_.spin + policy_.yield) return true;
    if (now_ - window_begin_ < policy_.lone_yield) return false;
    window_begin_ = now_;
    const long before = std::exchange(switches_, System::switches());
    return before == switches_;
  }

  // since the first clock read
  std::chrono::nanoseconds elapsed() {
    now_ = System::now();
    if (since_ == Clock::time_point{}) since_ = window_begin_ = now_;
    return now_ - since_;
  }

  WaitPolicy policy_;
  Phase phase_;
  uint32_t polls_ = 0;
  long switches_ = -1;
  Clock::time_point since_{}, now_{}, window_begin_{};
  std::chrono::nanoseconds slice_ = kFirstSlice;
};

using Backoff = BasicBackoff<WaitSystem>;

}  // namespace ccom
