// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "base/mutex.h"
#include "base/options.h"

namespace ccom {
namespace {

// Process-wide, as in the C API.
struct Hook {
  Mutex mutex;
  LogFunction function CCOM_GUARDED_BY(mutex) = nullptr;
  void* user CCOM_GUARDED_BY(mutex) = nullptr;
};
Hook& hook() {
  static Hook instance;
  return instance;
}

LogLevel stderr_level() {
  const std::string value = option("CCOM_LOG");
  if (value == "error") return LogLevel::Error;
  if (value == "info") return LogLevel::Info;
  if (value == "debug") return LogLevel::Debug;
  return LogLevel::Warn;
}

constexpr const char* kNames[] = {"error", "warning", "info", "debug"};

}  // namespace

void set_log_function(LogFunction function, void* user) {
  const Lock lock(hook().mutex);
  hook().function = function;
  hook().user = user;
}

bool log_enabled(LogLevel level) {
  const Lock lock(hook().mutex);
  return hook().function != nullptr || level <= stderr_level();
}

void log(LogLevel level, const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const Lock lock(hook().mutex);
  if (hook().function != nullptr) {
    hook().function(level, text, hook().user);
  } else if (level <= stderr_level()) {
    std::fprintf(stderr, "ccom[%d] %s: %s\n", static_cast<int>(::getpid()), kNames[static_cast<int>(level)], text);
  }
}

}  // namespace ccom
