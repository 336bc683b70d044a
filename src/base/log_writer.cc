// SPDX-License-Identifier: Apache-2.0
#include "base/log_writer.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
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

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kLines = 128;
constexpr milliseconds kIdle(1000);
constexpr milliseconds kBetweenRareLines(1000);

struct Posted {
  LogLine line;
  LogDelivery delivery;
  uint64_t dropped_before = 0;
};

// Lines of a topic, of which one is said a second.
struct RareLines {
  Clock::time_point said{};
  uint64_t left_out = 0;  // since then; the latest one is kept
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
  uint64_t refused CCOM_GUARDED_BY(mutex) = 0;  // by stderr, or lost before one that was
  RareLines rare[kLogTopics] CCOM_GUARDED_BY(mutex);

  bool is_idle() const CCOM_REQUIRES(mutex) { return finished == posted && dropped == 0; }
  bool is_full() const CCOM_REQUIRES(mutex) { return posted - finished == kLines; }
};

NeverDestroyed<Writer> holder;
Posted lines[kLines];  // those from `finished` to `posted` belong to the thread, the others to who holds the mutex
Posted latest_rare[kLogTopics];  // belong to who holds the mutex
Writer& writer() { return holder.value; }

// The thread, and whoever held the mutex, are in the parent; so are the lines.
void after_fork_in_child() {
  const LogHook hook = *writer().hook.load();
  Writer* const fresh = new (&writer()) Writer;
  fresh->hooks[0] = hook;
}
// At load time, so that no mutex is held.
const int registered = ::pthread_atfork(nullptr, nullptr, after_fork_in_child);

bool stderr_takes_bytes(int timeout_ms) {
  pollfd look{STDERR_FILENO, POLLOUT, 0};
  return ::poll(&look, 1, timeout_ms) == 1 && (look.revents & (POLLOUT | POLLERR | POLLNVAL)) == POLLOUT;
}

// False if they are refused. May block for ever.
bool write_to_stderr(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, bytes.data(), bytes.size());
    if (written > 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {
      (void)stderr_takes_bytes(-1);
    } else if (written == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool write_line(const LogLine& line, LogFormat format) {
  char bytes[kLogLineBytes];
  const size_t length = format_log_line(line, format, bytes);
  return length > 0 && write_to_stderr({bytes, length});
}

// False if it is lost. May block for ever.
bool deliver(const LogLine& line, const LogDelivery& delivery, LogHook hook) {
  if (hook.function != nullptr && !delivery.is_last) {
    hook.function(line.level, line.message, hook.user);
    return true;
  }
  return !delivery.to_stderr || write_line(line, delivery.format);
}

bool deliver_note(uint64_t lost, LogFormat format, LogHook hook) {
  char text[96];
  std::snprintf(text, sizeof text, "%llu lines were dropped, because those before could not be delivered",
                static_cast<unsigned long long>(lost));
  LogLine note;
  note.level = LogLevel::Warn;
  note.room = "base";
  note.set_message(text);
  return deliver(note, {.to_stderr = true, .format = format}, hook);
}

void keep(Writer& all, const LogLine& line, const LogDelivery& delivery) CCOM_REQUIRES(all.mutex) {
  if (all.is_full()) {
    ++all.dropped;
    return;
  }
  lines[all.posted % kLines] = {line, delivery, std::exchange(all.dropped, 0)};
  ++all.posted;
  all.arrived.notify_one();
}

// The first line of a topic is as any other, those within the next second are counted.
bool is_left_out(Writer& all, const LogLine& line, const LogDelivery& delivery) CCOM_REQUIRES(all.mutex) {
  if (!delivery.topic) return false;
  RareLines& topic = all.rare[static_cast<size_t>(*delivery.topic)];
  const auto now = Clock::now();
  if (topic.left_out == 0 && now - topic.said >= kBetweenRareLines) {
    topic.said = now;
    return false;
  }
  ++topic.left_out;
  latest_rare[static_cast<size_t>(*delivery.topic)] = {line, delivery};
  return true;
}

// Says what was left out, when its time has come, or now. True if there is more to be said later.
bool say_left_out(Writer& all, bool now_or_never = false) CCOM_REQUIRES(all.mutex) {
  bool has_more = false;
  for (size_t i = 0; i < kLogTopics; ++i) {
    RareLines& topic = all.rare[i];
    if (topic.left_out == 0) continue;
    const auto now = Clock::now();
    if (all.is_full() || (now - topic.said < kBetweenRareLines && !now_or_never)) {
      has_more = true;
      continue;
    }
    LogLine& line = latest_rare[i].line;
    char count[64] = "";
    if (topic.left_out > 1) {
      std::snprintf(count, sizeof count, " (and %llu more lines like this one)",
                    static_cast<unsigned long long>(topic.left_out - 1));
    }
    line.append(count);
    topic = {.said = now, .left_out = 0};
    keep(all, line, latest_rare[i].delivery);
  }
  return has_more;
}

// What is delivered next: a line, or how many were lost since the last one.
struct Taken {
  const Posted* posted;  // or null
  uint64_t lost;         // before it
  LogFormat format;
  LogHook hook;
};

Taken take_next(Writer& all) CCOM_REQUIRES(all.mutex) {
  const bool has_line = all.finished != all.posted;
  const Posted& next = lines[(has_line ? all.finished : all.posted - 1) % kLines];
  const uint64_t dropped = has_line ? next.dropped_before : std::exchange(all.dropped, 0);
  return {.posted = has_line ? &next : nullptr,
          .lost = std::exchange(all.refused, 0) + dropped,
          .format = next.delivery.format,
          .hook = *all.hook.load()};
}

// Returns how many lines are lost now.
uint64_t deliver_taken(const Taken& taken) {
  const bool is_told = taken.lost == 0 || deliver_note(taken.lost, taken.format, taken.hook);
  const bool is_out = taken.posted == nullptr || deliver(taken.posted->line, taken.posted->delivery, taken.hook);
  return (is_told ? 0 : taken.lost) + (is_out ? 0 : 1);
}

void run() {
  Writer& all = writer();
  Lock lock(all.mutex);
  const auto is_wanted = [&]() CCOM_REQUIRES(all.mutex) { return !all.is_idle() || all.is_over; };
  for (;;) {
    (void)say_left_out(all, all.is_over);
    if (all.is_idle()) {
      all.is_stuck = false;
      (void)lock.wait_for(all.arrived, kIdle, is_wanted);
      const bool has_more = say_left_out(all, all.is_over);
      if (all.is_idle() && !has_more) break;
      if (all.is_idle()) continue;
    }
    const Taken taken = take_next(all);
    lock.unlock();
    const uint64_t refused = deliver_taken(taken);
    lock.lock();
    all.refused = refused;
    if (taken.posted != nullptr) ++all.finished;
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

// After the end of the thread, or where there is none at the end of the process: what stderr takes at once. The signal
// of a pipe that nobody will read again would end the process.
void write_here(const LogLine& line, const LogDelivery& delivery) {
  if (!delivery.to_stderr || !stderr_takes_bytes(0)) return;
  const SignalsBlocked blocked;
  if (write_line(line, delivery.format) || errno != EPIPE) return;
  sigset_t pipe_signal;
  ::sigemptyset(&pipe_signal);
  ::sigaddset(&pipe_signal, SIGPIPE);
  const timespec at_once{};
  (void)::sigtimedwait(&pipe_signal, nullptr, &at_once);
}

// At exit, and when the library is unloaded.
struct Ending {
  ~Ending() {
    Writer& all = writer();
    Lock lock(all.mutex);
    if (all.finished != all.posted) (void)start(all);
    all.is_over = true;
    all.arrived.notify_all();
    const auto has_ended = [&]() CCOM_REQUIRES(all.mutex) { return !all.is_running; };
    const bool ended = lock.wait_for(all.delivered, kLogAtEnd, has_ended);
    if (ended) write_left_over(all);
    if (!all.thread.joinable()) return;
    std::thread thread = std::move(all.thread);
    lock.unlock();
    if (ended) {
      thread.join();
    } else {
      thread.detach();
    }
  }

 private:
  // A thread could not be started; a function is not called by others.
  static void write_left_over(Writer& all) CCOM_REQUIRES(all.mutex) {
    for (; all.finished != all.posted; ++all.finished) {
      const Posted& next = lines[all.finished % kLines];
      write_here(next.line, next.delivery);
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
    (void)say_left_out(all, true);
    lock.wait(all.delivered, [&]() CCOM_REQUIRES(all.mutex) { return all.is_idle() || !all.is_running; });
  }
  LogHook* const other = all.hook.load() == &all.hooks[0] ? &all.hooks[1] : &all.hooks[0];
  *other = hook;
  all.hook.store(other);
}

void post_log_line(const LogLine& line, const LogDelivery& delivery) noexcept {
  Writer& all = writer();
  Lock lock(all.mutex);
  if (all.is_over && !all.is_running) {
    lock.unlock();
    return write_here(line, delivery);
  }
  if (!is_left_out(all, line, delivery)) keep(all, line, delivery);
  (void)start(all);  // the next line tries again
}

void flush_log(milliseconds at_most) noexcept {
  Writer& all = writer();
  Lock lock(all.mutex);
  if (all.finished == all.posted || (all.is_stuck && at_most == kLogAtError)) return;
  if (!start(all) || all.thread.get_id() == std::this_thread::get_id()) return;
  const uint64_t last = all.posted;
  const auto is_out = [&]() CCOM_REQUIRES(all.mutex) { return all.finished >= last; };
  if (!lock.wait_for(all.delivered, at_most, is_out)) all.is_stuck = true;
}

}  // namespace ccom
