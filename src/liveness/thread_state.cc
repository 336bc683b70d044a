// SPDX-License-Identifier: Apache-2.0
#include "liveness/thread_state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/descriptor.h"

namespace ccom {
namespace {

// <linux/sched.h> of the kernel; field 9 of stat.
constexpr unsigned long kExiting = 0x4;
constexpr unsigned long kEndedBySignal = 0x400;
constexpr unsigned long kKillPending = 1UL << 8;  // SIGKILL; in field 31

std::string read_task_file(int process, int thread, const char* name) {
  char path[64], text[4096];
  std::snprintf(path, sizeof path, "/proc/%d/task/%d/%s", process, thread, name);
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t size = file.is_open() ? ::read(file.get(), text, sizeof text) : 0;
  return {text, static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

// Of the whole process. The kernel takes SIGKILL from the thread's own signals shortly before it says in the thread's
// flags that it ends, but leaves it here.
bool is_killed(const std::string& status) {
  const size_t line = status.find("\nShdPnd:");
  return line != std::string::npos && (std::strtoul(status.c_str() + line + 8, nullptr, 16) & kKillPending) != 0;
}

}  // namespace

ThreadState thread_state(int process, int thread) {
  const ThreadState state = parse_thread_state(read_task_file(process, thread, "stat"));
  if (state != ThreadState::Runnable) return state;
  return is_killed(read_task_file(process, thread, "status")) ? ThreadState::Ending : state;
}

ThreadState parse_thread_state(std::string_view stat) {
  const size_t name_end = stat.rfind(") ");  // the name may contain anything
  if (name_end == std::string_view::npos) return ThreadState::Unknown;
  const std::string fields(stat.substr(name_end + 2));
  char state = 0;
  unsigned long flags = 0, pending = 0;
  const int found = std::sscanf(fields.c_str(),
                                "%c %*s %*s %*s %*s %*s %lu %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                                "%*s %*s %*s %*s %*s %*s %*s %lu",
                                &state, &flags, &pending);
  if (found != 3) return ThreadState::Unknown;
  if (state == 'Z' || state == 'X' || (flags & (kExiting | kEndedBySignal)) != 0 || (pending & kKillPending) != 0)
    return ThreadState::Ending;
  return state == 'R' ? ThreadState::Runnable : ThreadState::Waiting;
}

uint64_t pid_namespace() {
  char self[32] = "";
  if (::readlink("/proc/self", self, sizeof self - 1) <= 0 || std::atoi(self) != ::getpid()) return 0;
  struct stat found {};
  return ::stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

}  // namespace ccom
