// SPDX-License-Identifier: Apache-2.0
//
// Delivers log lines to stderr or to the user's function by a thread of its own, because either may block for ever: a
// pipe that nobody reads, a terminal that is stopped, a function that waits. Who logs leaves a copy in a queue, and
// waits for nothing else than for others that do the same.
//
// Lines come out in the order in which they were posted. If they cannot be delivered, 128 of them are kept, the others
// counted, and so are those that stderr refuses (a full disk, a closed pipe): a line says how many were lost when lines
// get through again. The thread starts with a line and ends a second after the last one. It lives on the memory of its
// stack, but for lines in JSON.
#pragma once

#include <chrono>
#include <optional>

#include "base/log.h"
#include "base/log_line.h"

namespace ccom {

struct LogHook {
  LogFunction function = nullptr;  // null: stderr
  void* user = nullptr;
};

struct LogDelivery {
  bool to_stderr = true;  // if there is no function
  LogFormat format = LogFormat::Text;
  bool is_last = false;  // to stderr even if there is a function
  std::optional<LogTopic> topic{};
};

constexpr std::chrono::milliseconds kLogAtError(10);
constexpr std::chrono::milliseconds kLogAtEnd(500);

// Waits until the hook before, if it is a function, has got all lines and is not running: its `user` may go then. That
// is as long as it runs.
void set_log_hook(LogHook hook);
bool has_log_hook();

// Safe in forked children.
void post_log_line(const LogLine& line, const LogDelivery& delivery) noexcept;

// Waits until the lines so far are out, so that they are if the process ends without destructors now; never longer than
// `at_most`, and with kLogAtError not again as long as lines are left for which somebody has waited in vain. For
// callers who have nothing else to do: a call that has failed, an end.
void flush_log(std::chrono::milliseconds at_most = kLogAtError) noexcept;

}  // namespace ccom
