// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <thread>

namespace ccom {

// Looks every half millisecond; whether it came to be in time.
template <typename Condition>
bool wait_until(const Condition& condition, std::chrono::milliseconds at_most = std::chrono::seconds(60)) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return true;
}

}  // namespace ccom
