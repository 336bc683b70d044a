// SPDX-License-Identifier: Apache-2.0
//
// Deadlines on the monotonic clock. Pure rooms never include this.
#pragma once

#include <chrono>
#include <cstdint>

namespace ccom {

using Clock = std::chrono::steady_clock;

inline constexpr int64_t kNsPerMs = 1'000'000;

inline int64_t monotonic_ns() { return Clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

// A point in time at which a wait gives up. A value.
class Deadline {
 public:
  static constexpr int64_t kMostMs = int64_t{1} << 40;  // within the range of the clock

  static Deadline after(std::chrono::nanoseconds duration) { return Deadline(Clock::now() + duration); }
  // Capped at kMostMs, which is 30 years.
  static Deadline after_ms(int64_t ms) { return after(std::chrono::milliseconds(ms < kMostMs ? ms : kMostMs)); }
  explicit Deadline(Clock::time_point when) : when_(when) {}

  bool passed() const { return Clock::now() >= when_; }
  Clock::time_point when() const { return when_; }
  // Zero once it has passed.
  std::chrono::nanoseconds left() const {
    const auto rest = when_ - Clock::now();
    return rest.count() > 0 ? std::chrono::duration_cast<std::chrono::nanoseconds>(rest) : std::chrono::nanoseconds(0);
  }
  int64_t left_ms() const { return std::chrono::duration_cast<std::chrono::milliseconds>(left()).count(); }
  Deadline earlier(Deadline other) const { return when_ < other.when_ ? *this : other; }

 private:
  Clock::time_point when_;
};

}  // namespace ccom
