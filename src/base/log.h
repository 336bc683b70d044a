// SPDX-License-Identifier: Apache-2.0
//
// The process's log hook. Lines are rare (start-up, errors, failures in destructors); no fast path logs. Thread-safe;
// never throws, and never blocks for longer than 10 ms (base/log_writer.h).
#pragma once

#include <string>

#include "base/status.h"

namespace ccom {

enum class LogLevel : int { Error = 0, Warn = 1, Info = 2, Debug = 3 };
using LogFunction = void (*)(LogLevel level, const char* message, void* user);

// ConfigError if CCOM_LOG is none of its words; lines are written as by default then.
Status check_log_level();

// nullptr restores the default: lines up to the level of CCOM_LOG go to stderr.
// Waits until the function before has got all lines.
void set_log_function(LogFunction function, void* user);
bool log_enabled(LogLevel level);
[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...);

}  // namespace ccom
