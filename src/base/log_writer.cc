// SPDX-License-Identifier: Apache-2.0
#include "base/log_writer.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <new>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/never_destroyed.h"
#include "base/thread.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

constexpr size_t kLines = 128;
constexpr size_t kPrefixBytes = 64;  // "ccom[PID] LEVEL: "
constexpr milliseconds kPatience(10);
constexpr milliseconds kIdle(1000);
constexpr milliseconds kAtExit(500);
constexpr const char* kNames[] = {"error", "warning", "info", "debug"};

struct Line {
  LogLevel level, stderr_level;
  bool is_last_words;  // goes to stderr as it is
  uint64_t dropped_before;
  size_t prefix, length;  // of the text: prefix and message
  char text[kPrefixBytes + kLogTextBytes];
};

struct Writer {
  Mutex mutex;  // held for copying a line at most; nobody takes another one meanwhile
  std::condition_variable arrived, delivered;
  LogHook hooks[2];
  std::atomic<const LogHook*> hook{&hooks[0]};  // exchanged as a whole: a fork may come at any time
  std::thread thread CCOM_GUARDED_BY(mutex);
  bool is_running CCOM_GUARDED_BY(mutex) = false;
  bool is_over CCOM_GUARDED_BY(mutex) = false;   // the process exits, or the library is unloaded
  bool is_stuck CCOM_GUARDED_BY(mutex) = false;  // somebody has waited in vain, and lines are still left
  uint64_t posted CCOM_GUARDED_BY(mutex) = 0;
  uint64_t finished CCOM_GUARDED_BY(mutex) = 0;
  uint64_t dropped CCOM_GUARDED_BY(mutex) = 0;  // since the last line that was kept

  bool is_idle() const CCOM_REQUIRES(mutex) { return finished == posted && dropped == 0; }
};

NeverDestroyed<Writer> holder;
Line lines[kLines];  // those from `finished` to `posted` belong to the thread, the others to who holds the mutex
Writer& writer() { return holder.value; }

// The thread, and whoever held the mutex, are in the parent; so are the lines.
void after_fork_in_child() {
  const LogHook hook = *writer().hook.load();
  Writer* const fresh = new (&writer()) Writer;
  fresh->hooks[0] = hook;
}
// At load time, so that no mutex is held.
const int registered = ::pthread_atfork(nullptr, nullptr, after_fork_in_child);

void fill(Line& line, LogLevel level, LogLevel stderr_level, const char* text) {
  line.level = level;
  line.stderr_level = stderr_level;
  line.is_last_words = false;
  line.dropped_before = 0;
  line.prefix = static_cast<size_t>(std::snprintf(
      line.text, kPrefixBytes, "ccom[%d] %s: ", static_cast<int>(::getpid()), kNames[static_cast<int>(level)]));
  const int bytes = std::snprintf(line.text + line.prefix, kLogTextBytes, "%s", text);
  line.length = line.prefix + std::min(static_cast<size_t>(bytes < 0 ? 0 : bytes), kLogTextBytes - 1);
}

void fill_last_words(Line& line, const char* text) {
  fill(line, LogLevel::Error, LogLevel::Error, text);
  line.is_last_words = true;
}

bool stderr_takes_bytes(int timeout_ms) {
  pollfd look{STDERR_FILENO, POLLOUT, 0};
  return ::poll(&look, 1, timeout_ms) == 1 && (look.revents & POLLOUT) != 0;
}

void write_to_stderr(const char* text, size_t length) {
  while (length > 0) {
    const ssize_t written = ::write(STDERR_FILENO, text, length);
    if (written > 0) {
      text += written;
      length -= static_cast<size_t>(written);
    } else if (written < 0 && errno == EAGAIN) {
      (void)stderr_takes_bytes(-1);
    } else if (written == 0 || errno != EINTR) {
      return;
    }
  }
}

// May block for ever.
void deliver(Line& line, LogHook hook) {
  if (line.is_last_words) {
    write_to_stderr(line.text + line.prefix, line.length - line.prefix);
  } else if (hook.function != nullptr) {
    hook.function(line.level, line.text + line.prefix, hook.user);
  } else if (line.level <= line.stderr_level) {
    line.text[line.length] = '\n';
    write_to_stderr(line.text, line.length + 1);
  }
}

void deliver_note(uint64_t dropped, LogHook hook) {
  if (dropped == 0) return;
  char text[96];
  std::snprintf(text, sizeof text, "%llu lines were dropped, because those before could not be delivered",
                static_cast<unsigned long long>(dropped));
  Line note;
  fill(note, LogLevel::Warn, LogLevel::Warn, text);
  deliver(note, hook);
}

void run() {
  Writer& all = writer();
  Lock lock(all.mutex);
  const auto is_wanted = [&]() CCOM_REQUIRES(all.mutex) { return !all.is_idle() || all.is_over; };
  for (;;) {
    if (all.is_idle()) {
      all.is_stuck = false;
      (void)lock.wait_for(all.arrived, kIdle, is_wanted);
      if (all.is_idle()) break;
    }
    Line* const line = all.finished != all.posted ? &lines[all.finished % kLines] : nullptr;
    const uint64_t dropped = line != nullptr ? line->dropped_before : std::exchange(all.dropped, 0);
    const LogHook hook = *all.hook.load();
    lock.unlock();
    deliver_note(dropped, hook);
    if (line != nullptr) deliver(*line, hook);
    lock.lock();
    if (line != nullptr) ++all.finished;
    all.delivered.notify_all();
  }
  all.is_running = false;
  all.delivered.notify_all();
}

bool start(Writer& all) CCOM_REQUIRES(all.mutex) {
  if (all.is_running) return true;
  if (all.is_over) return false;
  if (all.thread.joinable()) all.thread.join();  // has ended, but for its last instructions
  all.is_running = start_thread(all.thread, "ccom-log", run) == 0;
  return all.is_running;
}

// Without the thread: a function of the user's is called here, and stderr gets what it takes at once.
void deliver_here(Line& line) {
  const LogHook hook = *writer().hook.load();
  if ((hook.function != nullptr && !line.is_last_words) || stderr_takes_bytes(0)) deliver(line, hook);
}

template <typename Fill>
void post(milliseconds patience, Fill fill_in) {
  Writer& all = writer();
  Lock lock(all.mutex);
  if (!start(all)) {
    lock.unlock();
    Line line;
    fill_in(line);
    return deliver_here(line);
  }
  if (all.posted - all.finished == kLines) {
    ++all.dropped;
    return;
  }
  Line& line = lines[all.posted % kLines];
  fill_in(line);
  line.dropped_before = std::exchange(all.dropped, 0);
  const uint64_t mine = ++all.posted;
  all.arrived.notify_one();
  if (all.thread.get_id() == std::this_thread::get_id() || (all.is_stuck && patience == kPatience)) return;
  const auto is_out = [&]() CCOM_REQUIRES(all.mutex) { return all.finished >= mine; };
  if (!lock.wait_for(all.delivered, patience, is_out)) all.is_stuck = true;
}

// At exit, and when the library is unloaded.
struct Ending {
  ~Ending() {
    Writer& all = writer();
    Lock lock(all.mutex);
    all.is_over = true;
    all.arrived.notify_all();
    const auto has_ended = [&]() CCOM_REQUIRES(all.mutex) { return !all.is_running; };
    const bool ended = lock.wait_for(all.delivered, kAtExit, has_ended);
    if (!all.thread.joinable()) return;
    std::thread thread = std::move(all.thread);
    lock.unlock();
    if (ended) {
      thread.join();
    } else {
      thread.detach();
    }
  }
} at_end;

}  // namespace

bool has_log_hook() { return writer().hook.load()->function != nullptr; }

void set_log_hook(LogHook hook) {
  Writer& all = writer();
  Lock lock(all.mutex);
  const LogHook* const before = all.hook.load();
  if (before->function != nullptr && all.thread.get_id() != std::this_thread::get_id()) {
    lock.wait(all.delivered, [&]() CCOM_REQUIRES(all.mutex) { return all.is_idle() || !all.is_running; });
  }
  LogHook* const other = all.hook.load() == &all.hooks[0] ? &all.hooks[1] : &all.hooks[0];
  *other = hook;
  all.hook.store(other);
}

void post_log_line(LogLevel level, LogLevel stderr_level, const char* text) noexcept {
  post(kPatience, [&](Line& line) { fill(line, level, stderr_level, text); });
}

void post_last_words(const char* text) noexcept {
  post(kAtExit, [text](Line& line) { fill_last_words(line, text); });
}

}  // namespace ccom
