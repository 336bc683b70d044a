// SPDX-License-Identifier: Apache-2.0
//
// Program results: the exit codes of ccom-bench and the examples, and a value with a code and its text.
#pragma once

#include <ccom/ccom.h>

#include <string>

namespace ccom::launch {

enum class ExitCode : int { Ok = 0, WrongData = 1, TooSlow = 2, Usage = 3, Communication = 4, Timeout = 5 };

// The code that explains the failure best: an invalid command line explains everything after it, a lost connection
// explains timeouts elsewhere, and both explain missing results.
ExitCode more_telling(ExitCode a, ExitCode b);

// Success, or the exit code and text with which the program should end.
struct [[nodiscard]] Outcome {
  ExitCode code = ExitCode::Ok;
  std::string text;
  bool everywhere = false;  // All ranks have reached it in the same way, so no rank waits for this one.
  bool of_setting = false;  // ccomConfigError

  bool ok() const { return code == ExitCode::Ok; }
};

// printf-like.
Outcome failure(ExitCode code, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Ok for ccomSuccess; otherwise what was attempted, with the library's description and text. `comm` may be NULL.
Outcome outcome_of(ccomResult_t result, ccomComm_t comm, const char* attempted);

}  // namespace ccom::launch

// Returns from a function with an Outcome unless the expression is good.
#define CCOM_LAUNCH_TRY(expression)                                                                   \
  do {                                                                                                \
    if (::ccom::launch::Outcome try_outcome_ = (expression); !try_outcome_.ok()) return try_outcome_; \
  } while (false)
