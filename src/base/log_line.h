// SPDX-License-Identifier: Apache-2.0
//
// A log line as a value, and as bytes for stderr. Each is one write of at most PIPE_BUF bytes, so that lines of
// processes that share a pipe do not mix.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/log_levels.h"

namespace ccom {

constexpr size_t kLogTextBytes = 2048;  // of a message, with its terminating zero; the rest is cut off
constexpr size_t kLogLineBytes = PIPE_BUF;

int64_t log_time_ns() noexcept;  // now, since 1970

enum class LogFormat : int { Text, Json };

struct LogLine {
  LogLevel level = LogLevel::Error;
  std::string_view room{};  // outlives the line
  int64_t time_ns = log_time_ns();
  int rank = -1;              // -1: not known
  uint64_t communicator = 0;  // 0: not known
  bool is_cut = false;
  size_t length = 0;
  char message[kLogTextBytes] = {};

  void set_message(std::string_view text);  // whole characters of UTF-8, as many as fit
  void append(std::string_view end);        // in the place of the message's end where both do not fit
  std::string_view text() const { return {message, length}; }
};

// "ccom[PID] warning (tcp): MESSAGE", or a JSON object (docs/observing.md), and a newline. A message that does not fit
// is cut, and the line says so. Returns its bytes; 0 if there is no memory for JSON.
size_t format_log_line(const LogLine& line, LogFormat format, std::span<char, kLogLineBytes> bytes) noexcept;

}  // namespace ccom
