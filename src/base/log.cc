// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <string_view>

#include "base/log_writer.h"
#include "base/options.h"

namespace ccom {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"error", "warn", "info", "debug"};  // by the value of LogLevel

LogLevel stderr_level() noexcept {
  try {
    const auto* const level = std::ranges::find(kLevels, option("CCOM_LOG"));
    if (level != kLevels.end()) return static_cast<LogLevel>(level - kLevels.begin());
  } catch (const std::exception&) {  // no memory for the value
  }
  return LogLevel::Warn;
}

}  // namespace

Status check_log_level() {
  const std::string value = option("CCOM_LOG");
  if (std::ranges::find(kLevels, value) != kLevels.end()) return {};
  return error(ErrorKey::VariableValue, "CCOM_LOG=%s: there are error, warn, info and debug", value.c_str());
}

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
