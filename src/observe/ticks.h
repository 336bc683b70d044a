// SPDX-License-Identifier: Apache-2.0
//
// A clock that costs a few nanoseconds to read: the processor's counter where it runs at one rate on all cores, which
// the kernel says of it, else CLOCK_MONOTONIC in nanoseconds. Points that were read on several clocks together turn
// ticks into times.
#pragma once

#include <cstdint>

#include "base/time.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace ccom {

class TickClock {
 public:
  // Looks at /sys.
  static TickClock of_machine();
  static TickClock monotonic() { return TickClock(false); }

  uint64_t now() const {
    if (counts_cycles_) [[likely]] {
#if defined(__x86_64__)
      return __rdtsc();
#elif defined(__aarch64__)
      uint64_t ticks;
      asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
      return ticks;
#endif
    }
    return static_cast<uint64_t>(monotonic_ns());
  }

 private:
  explicit TickClock(bool counts_cycles) : counts_cycles_(counts_cycles) {}
  bool counts_cycles_;
};

// The same moment on three clocks, to about a microsecond.
struct ClockPoint {
  uint64_t ticks = 0;
  int64_t monotonic_ns = 0, realtime_ns = 0;
  friend bool operator==(const ClockPoint&, const ClockPoint&) = default;
};
ClockPoint read_clocks(TickClock clock);

}  // namespace ccom
