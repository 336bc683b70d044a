// SPDX-License-Identifier: Apache-2.0
//
// Long suites, divided over the days: each day runs a part, CCOM_TEST_LONG=1 all of them.
#pragma once

#include <cstdlib>
#include <ctime>

namespace ccom {

inline bool is_long() { return std::getenv("CCOM_TEST_LONG") != nullptr; }

// CCOM_TEST_DAY, or today's number in the year.
inline int test_day() {
  const char* const day = std::getenv("CCOM_TEST_DAY");
  const time_t now = std::time(nullptr);
  return day != nullptr ? std::atoi(day) : std::gmtime(&now)->tm_yday;
}

}  // namespace ccom
