// SPDX-License-Identifier: Apache-2.0
//
// Tells when established lines are ready again. Up to kFew lines it asks the kernel about those that are armed, by a
// call that needs no descriptor; for more of them it has an epoll descriptor. So hundreds of communicators with few
// peers each, as groups across hosts are, need no more descriptors than connections. Who sleeps borrows an event
// descriptor, of which a process has as many as threads have slept at once.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/status.h"

namespace ccom::tcp {

struct Line;
enum class Direction { Read, Write };

// Used by one thread, but for wake().
class Readiness {
 public:
  static constexpr size_t kFew = 16;

  // Of the lines of a transport, before any is armed.
  Status prepare(size_t lines);
  // Asks, once, to clear the armed flag when the line is ready.
  void arm(Line& line, Direction direction);
  // Clears the flags of those that are.
  void look() { look_for(std::chrono::nanoseconds(0), -1); }
  // The same, after waiting until one is, or is_woken(), or the time is up.
  void wait(std::chrono::nanoseconds at_most);
  // Any thread.
  void wake();
  bool is_woken() const { return is_woken_.load(); }
  void forget_wake() { is_woken_.store(false); }

 private:
  void look_for(std::chrono::nanoseconds at_most, int event);
  void look_at_epoll();
  void watch(Line& line) const;

  Descriptor epoll_;          // not open: few lines
  std::vector<Line*> armed_;  // of few
  std::vector<pollfd> asked_;
  std::atomic<bool> is_woken_ = false;
  Mutex mutex_;
  int sleeper_ CCOM_GUARDED_BY(mutex_) = -1;  // the event descriptor of a wait() under way
};

}  // namespace ccom::tcp
