// SPDX-License-Identifier: Apache-2.0
//
// What a rank does about a wait that lasts: has the calls of all ranks compared, warns, ends by a Timeout. Warnings and
// the Timeout name the ranks that have not come, on whichever host, and not only those that this rank happens to wait
// for.
#pragma once

#include <vector>

#include "base/time.h"
#include "liveness/monitor.h"

namespace ccom {

// A Timeout of rank `self`, which waited for `ranks`. In a collective call (`collective`) the ranks of any host that
// have not begun it are named and blamed instead, see Monitor::find_stragglers().
Status timeout_status(Monitor& monitor, Rank self, std::vector<Rank> ranks, bool collective);

// One wait without progress of one thread. Calls are compared after 300 ms; warnings come after Monitor::warn_after(),
// after twice that time, and so on.
class LongWait {
 public:
  LongWait(Monitor& monitor, Rank self) : monitor_(monitor), self_(self) {}
  ~LongWait() { end(); }
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

  // There was progress: another wait may begin.
  void end() {
    since_ = {};
    if (is_noted_) {
      is_noted_ = false;
      monitor_.end_wait();
    }
    if (!is_comparing_) return;
    is_comparing_ = false;
    monitor_.end_comparison();
  }
  // The wait has lasted since then, for `peer` among others: to be told once, as soon as the clock was read.
  bool is_noted() const { return is_noted_; }
  void note(Rank peer, Clock::time_point since) {
    is_noted_ = true;
    monitor_.begin_wait(peer, since);
  }
  // Whether react() has something to do. To be asked with the time whenever the wait is about to block; it began with
  // the first time.
  bool is_due(Clock::time_point now);
  // ranks: for whom this one waits; collective: in a collective call. Takes 150 ms where it warns and there are several
  // hosts. The caller looks at the communicator's error next.
  void react(const std::vector<Rank>& ranks, bool collective);

 private:
  void warn(Clock::time_point now, const std::vector<Rank>& ranks, bool collective);

  Monitor& monitor_;
  const Rank self_;
  bool is_comparing_ = false, is_noted_ = false;
  Clock::time_point since_{}, next_comparison_{}, next_warning_{};  // 0: not begun
};

}  // namespace ccom
