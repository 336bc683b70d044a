// SPDX-License-Identifier: Apache-2.0
//
// The process's log. Lines are rare (start-up, errors, failures in destructors); no fast path logs. Thread-safe; never
// throws, never waits: a thread of its own delivers the lines (base/log_writer.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/log_levels.h"
#include "base/status.h"

namespace ccom {

using LogFunction = void (*)(LogLevel level, const char* message, void* user);

// The level of a line, and where it is logged. A level becomes one in the call of log(): its room is the folder of the
// file that has the call, also in a batch of files that are compiled as one.
struct LogSource {
  LogSource(LogLevel at, const char* in = __builtin_FILE()) : level(at), file(in) {}  // NOLINT: implicit
  std::string_view room() const { return room_of_file(file); }

  LogLevel level;
  const char* file;
};

// Lines that many parts of a communicator may say at once. A process says the first of a topic, and after a second the
// last one with the number of others; all of them where CCOM_LOG is debug for the room.
enum class LogTopic : int { PartStarted, Silence, Starvation, Rail };
constexpr int kLogTopics = 4;

// Which rank of which communicator (0: not known yet) the lines of this thread are about, for as long as it lives.
class LogContext {
 public:
  LogContext(int rank, uint64_t communicator);
  ~LogContext();
  LogContext(const LogContext&) = delete;
  LogContext& operator=(const LogContext&) = delete;

 private:
  const int rank_before_;
  const uint64_t communicator_before_;
};

// ConfigError if CCOM_LOG or CCOM_LOG_FORMAT is none of what there is; as by default then.
Status check_log_settings();

// If stderr is closed, its number is taken by /dev/null: else the next thing that is opened, a connection or shared
// memory, would get the lines.
void take_number_of_stderr() noexcept;

// nullptr restores the default: lines up to the levels of CCOM_LOG go to stderr.
// Waits until the function before has got all lines.
void set_log_function(LogFunction function, void* user);
bool log_enabled(LogSource source);
[[gnu::format(printf, 2, 3)]] void log(LogSource source, const char* format, ...);
[[gnu::format(printf, 3, 4)]] void log_rarely(LogTopic topic, LogSource source, const char* format, ...);
// For sentences whose level is not asked for: they go to stderr whatever CCOM_LOG is.
void log_always(LogSource source, const std::string& text);
// Before the process ends by a signal of its own: goes to stderr, and returns when it is out after the lines before, or
// cannot be delivered within half a second.
void log_last_words(LogSource source, const char* text) noexcept;

}  // namespace ccom
