// SPDX-License-Identifier: Apache-2.0
//
// When who waits for other ranks at the start says so: soon, since ranks that are missing then often never come.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/options.h"
#include "base/time.h"

namespace ccom {

// CCOM_WARN_MS, if that is shorter. 0: never. A wrong value is told elsewhere.
inline int64_t start_warning_ms() {
  constexpr int64_t kSoon = 5000;
  const Result<int64_t> asked = integer_option("CCOM_WARN_MS", 0, Deadline::kMostMs);
  return asked ? std::min(*asked, kSoon) : kSoon;
}

// Begins when it is made. Used by one thread at a time.
class StartWait {
 public:
  explicit StartWait(int64_t warn_ms)
      : next_(warn_ms > 0 ? since_ + std::chrono::milliseconds(warn_ms) : Clock::time_point::max()) {}

  Deadline next() const { return Deadline(next_); }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - since_).count(); }
  // Whether it is time to warn; again after twice the time of the wait.
  bool is_due() {
    const Clock::time_point now = Clock::now();
    if (now < next_) return false;
    next_ = now + (now - since_);
    return true;
  }

 private:
  const Clock::time_point since_ = Clock::now();
  Clock::time_point next_;
};

}  // namespace ccom
