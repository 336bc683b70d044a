// SPDX-License-Identifier: Apache-2.0
#include "bench/launch/outcome.h"

#include <array>
#include <cstdarg>
#include <cstdio>

namespace ccom::launch {
namespace {

int weight(ExitCode code) {
  switch (code) {
    case ExitCode::Usage: return 5;
    case ExitCode::Communication: return 4;
    case ExitCode::Timeout: return 3;
    case ExitCode::WrongData: return 2;
    case ExitCode::TooSlow: return 1;
    case ExitCode::Ok: return 0;
  }
  return 4;  // An unknown code, for example from exec, counts as a failed rank.
}

ExitCode code_of(ccomResult_t result) {
  switch (result) {
    case ccomSuccess: return ExitCode::Ok;
    case ccomTimeout: return ExitCode::Timeout;
    case ccomConfigError: return ExitCode::Usage;
    default: return ExitCode::Communication;
  }
}

}  // namespace

ExitCode more_telling(ExitCode a, ExitCode b) { return weight(b) > weight(a) ? b : a; }

Outcome failure(ExitCode code, const char* format, ...) {
  std::array<char, 2048> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  return {.code = code, .text = text.data()};
}

Outcome outcome_of(ccomResult_t result, ccomComm_t comm, const char* attempted) {
  if (result == ccomSuccess) return {};
  // A call rejected for its arguments leaves no error on the communicator; the text is the thread's.
  const std::string of_thread = ccomGetLastError(nullptr);
  const std::string text = !of_thread.empty() || comm == nullptr ? of_thread : ccomGetLastError(comm);
  Outcome outcome = failure(code_of(result), "%s: %s: %s", attempted, ccomGetErrorString(result), text.c_str());
  outcome.of_setting = result == ccomConfigError;
  return outcome;
}

}  // namespace ccom::launch
