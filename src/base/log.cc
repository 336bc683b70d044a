// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <cstdarg>
#include <cstdio>
#include <exception>

#include "base/log_writer.h"
#include "base/options.h"

namespace ccom {
namespace {

LogLevel stderr_level() noexcept {
  try {
    const std::string value = option("CCOM_LOG");
    if (value == "error") return LogLevel::Error;
    if (value == "info") return LogLevel::Info;
    if (value == "debug") return LogLevel::Debug;
  } catch (const std::exception&) {  // no memory for the value
  }
  return LogLevel::Warn;
}

}  // namespace

void set_log_function(LogFunction function, void* user) { set_log_hook({function, user}); }

bool log_enabled(LogLevel level) { return has_log_hook() || level <= stderr_level(); }

void log(LogLevel level, const char* format, ...) {
  const LogLevel at_most = stderr_level();
  if (!has_log_hook() && level > at_most) return;
  char text[kLogTextBytes];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  post_log_line(level, at_most, text);
}

}  // namespace ccom
