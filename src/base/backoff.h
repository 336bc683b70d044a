// SPDX-License-Identifier: Apache-2.0
//
// How a waiting rank spends its time: poll, then yield, then block.
//
// A hand-over costs about 0.14 us to a spinning peer on another core, 0.8 us by sched_yield on the same core, and 33 us
// to a blocked one on an idle core. With a core per rank: spin briefly, then yield; with more ranks than cores spinning
// only keeps the peer from running: yield after a poll or two. Blocking comes last, in slices that grow, so that an
// idle rank costs nothing.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>

#include "base/time.h"

namespace ccom {

struct WaitPolicy {
  std::chrono::nanoseconds spin{2000};
  std::chrono::nanoseconds yield{200000};

  static WaitPolicy for_host(int ranks, int cpus) {
    WaitPolicy policy;
    if (ranks > cpus) policy.spin = std::chrono::nanoseconds(0);
    return policy;
  }
};

// One wait. Belongs to one thread.
class Backoff {
 public:
  enum class Next { Poll, Block };

  explicit Backoff(const WaitPolicy& policy) : policy_(policy) {}

  // Call after progress: the wait begins anew.
  void reset() {
    idle_ = 0;
    slice_ = kFirstSlice;
  }

  // Call after a fruitless poll. Block: the caller blocks for about slice() before it polls again.
  Next step() {
    if (idle_ == 0) {
      since_ = Clock::now();
      idle_ = 1;
      now_ = since_;
      return Next::Poll;
    }
    ++idle_;
    if (spinning_ && idle_ % kPollsPerClock != 0) {
      pause();
      return Next::Poll;
    }
    now_ = Clock::now();
    const auto waited = now_ - since_;
    spinning_ = waited < policy_.spin;
    if (spinning_) {
      pause();
      return Next::Poll;
    }
    if (waited < policy_.spin + policy_.yield) {
      ::sched_yield();
      return Next::Poll;
    }
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
  static constexpr std::chrono::nanoseconds kFirstSlice{100000};
  static constexpr std::chrono::nanoseconds kLastSlice{5000000};  // bounds how late a dead peer is noticed
  static constexpr uint32_t kPollsPerClock = 16;

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
  }

  WaitPolicy policy_;
  uint32_t idle_ = 0;
  bool spinning_ = true;
  Clock::time_point since_{}, now_{};
  std::chrono::nanoseconds slice_ = kFirstSlice;
};

}  // namespace ccom
