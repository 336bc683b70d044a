// SPDX-License-Identifier: Apache-2.0
#include "observe/ticks.h"

#include <fstream>
#include <string>

namespace ccom {

TickClock TickClock::of_machine() {
#if defined(__x86_64__)
  // The kernel takes the counter off this list where it stops, or differs between cores.
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/available_clocksource");
  for (std::string name; file >> name;)
    if (name == "tsc") return TickClock(true);
  return TickClock(false);
#elif defined(__aarch64__)
  return TickClock(true);
#else
  return TickClock(false);
#endif
}

// The one of a few attempts between whose two looks at the counter least time has passed.
ClockPoint read_clocks(TickClock clock) {
  ClockPoint best;
  uint64_t least = UINT64_MAX;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const uint64_t before = clock.now();
    const int64_t monotonic = monotonic_ns();
    const int64_t realtime = std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    const uint64_t passed = clock.now() - before;
    if (passed >= least) continue;
    least = passed;
    best = {before + passed / 2, monotonic, realtime};
  }
  return best;
}

}  // namespace ccom
