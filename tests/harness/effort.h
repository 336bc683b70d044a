// SPDX-License-Identifier: Apache-2.0
//
// How much a test does: CCOM_TEST_LONG=1 asks for more of the same, never for other cases. Random tests have a seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace ccom {

inline bool is_long() { return std::getenv("CCOM_TEST_LONG") != nullptr; }

// What `variable` says, or the usual number or that of the long form.
inline size_t count_from(const char* variable, size_t usual, size_t in_long_form) {
  const char* const text = std::getenv(variable);
  if (text != nullptr) return static_cast<size_t>(std::atoll(text));
  return is_long() ? in_long_form : usual;
}

// CCOM_TEST_SEED, or another one each time.
inline uint64_t test_seed() {
  const char* const given = std::getenv("CCOM_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

// "p50 1.2 ms, p99 3.4 ms, max 5.6 ms"; of at least one.
inline std::string summary_of(std::vector<double> times_ms) {
  std::ranges::sort(times_ms);
  const auto at = [&](size_t percent) { return times_ms[(times_ms.size() * percent + 99) / 100 - 1]; };
  char text[80];
  std::snprintf(text, sizeof text, "p50 %.1f ms, p99 %.1f ms, max %.1f ms", at(50), at(99), times_ms.back());
  return text;
}

}  // namespace ccom
