// SPDX-License-Identifier: Apache-2.0
//
// The value or the error of a Result, for tests that need one of them to go on.
#pragma once

#include <stdexcept>
#include <string>

#include "base/status.h"

namespace ccom {

// Ok if there is a value.
template <typename T>
Status error_of(const Result<T>& result) {
  return result ? Status() : result.error();
}

// "" if there is a value.
template <typename T>
std::string message_of(const Result<T>& result) {
  return error_of(result).message();
}

// Throws if there is none, which ends a rank or a test. line: of the call; clang 14 has no std::source_location.
template <typename T>
T value_of(Result<T> result, int line = __builtin_LINE()) {
  if (!result) throw std::runtime_error("line " + std::to_string(line) + ": " + message_of(result));
  return *std::move(result);
}

}  // namespace ccom
