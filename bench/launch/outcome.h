// SPDX-License-Identifier: Apache-2.0
//
// How a program of ours ends: the exit codes of ccom-bench and the examples, and a value that carries one with its
// text.
#pragma once

#include <ccom/ccom.h>

#include <string>

namespace ccom::launch {

enum class ExitCode : int { Ok = 0, WrongData = 1, TooSlow = 2, Usage = 3, Communication = 4, Timeout = 5 };

// The code that says more about what went wrong: a wrong command line explains everything after it, a broken connection
// explains a timeout elsewhere, and both explain missing results.
ExitCode more_telling(ExitCode a, ExitCode b);

// Success, or the exit code and the text with which the program is to end.
struct [[nodiscard]] Outcome {
  ExitCode code = ExitCode::Ok;
  std::string text;
  bool everywhere = false;  // Every rank has come to it in the same way: no rank waits for this one.

  bool ok() const { return code == ExitCode::Ok; }
};

// printf-like.
Outcome failure(ExitCode code, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Ok for ccomSuccess; else what was attempted, the library's sentence and its text. `comm` may be NULL.
Outcome outcome_of(ccomResult_t result, ccomComm_t comm, const char* attempted);

}  // namespace ccom::launch

// Returns from a function that gives an Outcome, unless the expression is one that is good.
#define CCOM_LAUNCH_TRY(expression)                                                                   \
  do {                                                                                                \
    if (::ccom::launch::Outcome try_outcome_ = (expression); !try_outcome_.ok()) return try_outcome_; \
  } while (false)
