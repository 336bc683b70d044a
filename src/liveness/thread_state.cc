// SPDX-License-Identifier: Apache-2.0
#include "liveness/thread_state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

}  // namespace

ThreadState thread_state(int process, int thread) {
  char path[64], stat[1024];
  std::snprintf(path, sizeof path, "/proc/%d/task/%d/stat", process, thread);
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return ThreadState::Unknown;
  const ssize_t size = ::read(file.get(), stat, sizeof stat);
  return size > 0 ? parse_thread_state({stat, static_cast<size_t>(size)}) : ThreadState::Unknown;
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
