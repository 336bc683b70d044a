// SPDX-License-Identifier: Apache-2.0
//
// What a rank says about a wait that lasts: warnings while it waits, a Timeout in the end. Both name the ranks that
// have not come, on whichever host, and not only those that this rank happens to wait for.
#pragma once

#include <vector>

#include "base/time.h"
#include "liveness/monitor.h"

namespace ccom {

// A Timeout of rank `self`, which waited for `ranks`. In a collective call (`collective`) the ranks of any host that
// have not begun it are named and blamed instead, see Monitor::find_stragglers().
Status timeout_status(Monitor& monitor, Rank self, std::vector<Rank> ranks, bool collective);

// When to warn: after Monitor::warn_after(), after twice that time, and so on. Of one wait without progress; used by
// one thread.
class LongWait {
 public:
  // To be asked with the time whenever the wait is about to block; it began with the first time.
  bool is_warning_due(Clock::time_point now, const Monitor& monitor);
  // Logs whom rank `self` waits for, and since when. Takes 150 ms with several hosts.
  void warn(Monitor& monitor, Rank self, const std::vector<Rank>& ranks, bool collective);

 private:
  Clock::time_point since_{}, next_{};  // 0: not begun
};

}  // namespace ccom
