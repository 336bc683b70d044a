// SPDX-License-Identifier: Apache-2.0
//
// Long suites, divided over the days: each day runs a part, CCOM_TEST_LONG=1 all of them. Random ones have a seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

namespace ccom {

inline bool is_long() { return std::getenv("CCOM_TEST_LONG") != nullptr; }

// What `variable` says, or the number for every day or for the long form.
inline size_t count_from(const char* variable, size_t everyday, size_t in_long_form) {
  const char* const text = std::getenv(variable);
  if (text != nullptr) return static_cast<size_t>(std::atoll(text));
  return is_long() ? in_long_form : everyday;
}

// Whether a point is in the part that is to run, where a long form takes too long for one piece: CCOM_TEST_PART=I/N,
// the Ith of N parts, I from 0; else all are.
inline bool is_in_part(size_t point) {
  const char* const text = std::getenv("CCOM_TEST_PART");
  size_t part = 0, parts = 1;
  if (text != nullptr && (std::sscanf(text, "%zu/%zu", &part, &parts) != 2 || part >= parts)) {
    std::fprintf(stderr, "CCOM_TEST_PART=%s is not I/N with I < N\n", text);
    std::exit(3);
  }
  return point % parts == part;
}

// CCOM_TEST_DAY, or today's number in the year.
inline int test_day() {
  const char* const day = std::getenv("CCOM_TEST_DAY");
  const time_t now = std::time(nullptr);
  return day != nullptr ? std::atoi(day) : std::gmtime(&now)->tm_yday;
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
