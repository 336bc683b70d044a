// SPDX-License-Identifier: Apache-2.0
//
// How long a thread waits for other ranks: until a deadline, or until it is told that waiting is of no use.
#pragma once

#include <utility>

#include "base/time.h"
#include "base/types.h"

namespace ccom {

class WaitLimit {
 public:
  // A deadline alone is one too.
  WaitLimit(Deadline deadline, Interrupted interrupted = {})  // NOLINT(google-explicit-constructor)
      : deadline_(deadline), interrupted_(std::move(interrupted)) {}

  Deadline deadline() const { return deadline_; }
  bool is_reached() const { return deadline_.passed() || (interrupted_ && interrupted_()); }
  // When is_reached() has to be asked again. Who sleeps does so at most until then.
  Deadline next_look() const {
    constexpr std::chrono::milliseconds kInterval{10};
    return interrupted_ ? deadline_.earlier(Deadline::after(kInterval)) : deadline_;
  }

 private:
  Deadline deadline_;
  Interrupted interrupted_;
};

}  // namespace ccom
