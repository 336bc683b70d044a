// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <exception>

#include "base/log_writer.h"
#include "base/options.h"
#include "base/text.h"

namespace ccom {
namespace {

struct Context {
  int rank;
  uint64_t communicator;
};
thread_local constinit Context thread_context = {-1, 0};

LogLevel level_for(std::string_view room) noexcept {
  try {
    return log_level_of(option("CCOM_LOG"), room);
  } catch (const std::exception&) {  // no memory for the value
    return LogLevel::Warn;
  }
}

LogFormat format_of_lines() noexcept {
  try {
    return option("CCOM_LOG_FORMAT") == "json" ? LogFormat::Json : LogFormat::Text;
  } catch (const std::exception&) {
    return LogFormat::Text;
  }
}

LogLine new_line(const LogSource& source) {
  LogLine line;
  line.level = source.level;
  line.room = source.room();
  line.rank = thread_context.rank;
  line.communicator = thread_context.communicator;
  return line;
}

// The text may be longer than what fits into a line, which is to be seen.
void post(const LogSource& source, const LogDelivery& delivery, const char* format, va_list arguments) {
  char text[kLogTextBytes + 1];
  const int length = print_into(text, sizeof text, format, arguments);
  LogLine line = new_line(source);
  line.set_message({text, std::min(static_cast<size_t>(length < 0 ? 0 : length), sizeof text - 1)});
  post_log_line(line, delivery);
}

}  // namespace

LogContext::LogContext(int rank, uint64_t communicator)
    : rank_before_(thread_context.rank), communicator_before_(thread_context.communicator) {
  thread_context = {rank, communicator};
}

LogContext::~LogContext() { thread_context = {rank_before_, communicator_before_}; }

Status check_log_settings() {
  CCOM_TRY(check_log_levels(option("CCOM_LOG")));
  const std::string format = option("CCOM_LOG_FORMAT");
  if (format == "text" || format == "json") return {};
  return error(ErrorKey::VariableValue, "CCOM_LOG_FORMAT=%s: there are text and json", format.c_str());
}

void take_number_of_stderr() noexcept {
  if (::fcntl(STDERR_FILENO, F_GETFD) >= 0) return;
  const int nowhere = ::open("/dev/null", O_WRONLY);
  if (nowhere < 0 || nowhere == STDERR_FILENO) return;
  const int taken = ::fcntl(nowhere, F_DUPFD, STDERR_FILENO);  // the least that is free: another thread may be faster
  if (taken > STDERR_FILENO) ::close(taken);
  ::close(nowhere);
}

void set_log_function(LogFunction function, void* user) { set_log_hook({function, user}); }

bool log_enabled(LogSource source) { return has_log_hook() || source.level <= level_for(source.room()); }

void log(LogSource source, const char* format, ...) {
  const bool to_stderr = source.level <= level_for(source.room());
  if (!has_log_hook() && !to_stderr) return;
  va_list arguments;
  va_start(arguments, format);
  post(source, {.to_stderr = to_stderr, .format = format_of_lines()}, format, arguments);
  va_end(arguments);
}

void log_rarely(LogTopic topic, LogSource source, const char* format, ...) {
  const LogLevel at_most = level_for(source.room());
  const bool to_stderr = source.level <= at_most;
  if (!has_log_hook() && !to_stderr) return;
  LogDelivery delivery{.to_stderr = to_stderr, .format = format_of_lines()};
  if (at_most != LogLevel::Debug) delivery.topic = topic;
  va_list arguments;
  va_start(arguments, format);
  post(source, delivery, format, arguments);
  va_end(arguments);
}

void log_always(LogSource source, const std::string& text) {
  LogLine line = new_line(source);
  line.set_message(text);
  post_log_line(line, {.to_stderr = true, .format = format_of_lines()});
}

void log_last_words(LogSource source, const char* text) noexcept {
  LogLine line = new_line(source);
  line.set_message(text);
  post_log_line(line, {.to_stderr = true, .format = format_of_lines(), .is_last = true});
  flush_log(kLogAtEnd);
}

}  // namespace ccom
