// SPDX-License-Identifier: Apache-2.0
//
// Delivers log lines to stderr or to the user's function by a thread of its own, because either may block for ever: a
// pipe that nobody reads, a terminal that is stopped, a function that waits. Who logs waits 10 ms at most, once.
//
// So lines are normally out when log() returns, in the order in which they were posted, also if the process ends right
// after. If they cannot be delivered, 128 of them are kept, the others counted and reported as dropped. The thread
// starts with a line and ends a second after the last one. It allocates nothing but its own stack.
#pragma once

#include <cstddef>

#include "base/log.h"

namespace ccom {

struct LogHook {
  LogFunction function = nullptr;  // null: stderr
  void* user = nullptr;
};

constexpr size_t kLogTextBytes = 2048;  // of one line; the rest is cut off

// Waits until the hook before, if it is a function, has got all lines and is not running: its `user` may go then. That
// is as long as it runs.
void set_log_hook(LogHook hook);
bool has_log_hook();

// `text` goes to the hook's function, or to stderr if `level` is at most `stderr_level`. Safe in forked children.
void post_log_line(LogLevel level, LogLevel stderr_level, const char* text) noexcept;

// For the last words of a process, to stderr, as they are: returns when they are out after the lines before, or cannot
// be delivered within half a second.
void post_last_words(const char* text) noexcept;

}  // namespace ccom
