// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/providers.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "base/descriptor.h"
#include "base/time.h"

extern char** environ;

namespace ccom::doctor {
namespace {

template <typename Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

Providers ask_libfabric() {
  void* library = ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);  // not closed: its providers do not unload cleanly
  if (library == nullptr) library = ::dlopen("libccom-fabric.so.1", RTLD_NOW | RTLD_LOCAL);  // in ccom's wheel
  if (library == nullptr) return {.failure = "libfabric is not installed"};
  auto* const version = find<decltype(::fi_version)>(library, "fi_version");
  auto* const getinfo = find<decltype(::fi_getinfo)>(library, "fi_getinfo");
  auto* const freeinfo = find<decltype(::fi_freeinfo)>(library, "fi_freeinfo");
  if (version == nullptr || getinfo == nullptr || freeinfo == nullptr)
    return {.failure = "libfabric lacks required functions"};
  Providers found;
  found.version = std::to_string(FI_MAJOR(version())) + "." + std::to_string(FI_MINOR(version()));
  fi_info* list = nullptr;
  const int code = getinfo(FI_VERSION(1, 9), nullptr, nullptr, 0, nullptr, &list);
  if (code != 0) found.failure = "fi_getinfo failed with code " + std::to_string(code);
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    if (info->fabric_attr == nullptr || info->fabric_attr->prov_name == nullptr) continue;
    const std::string name = info->fabric_attr->prov_name;
    if (std::ranges::find(found.names, name) == found.names.end()) found.names.push_back(name);
  }
  if (list != nullptr) freeinfo(list);
  std::ranges::sort(found.names);
  return found;
}

// The child's output until it ended or the deadline passed.
std::string read_all(int pipe, Deadline deadline) {
  std::string text;
  std::array<char, 4096> piece;
  pollfd entry{.fd = pipe, .events = POLLIN, .revents = 0};
  while (!deadline.passed()) {
    if (::poll(&entry, 1, static_cast<int>(deadline.left_ms() + 1)) <= 0) continue;
    const ssize_t got = ::read(pipe, piece.data(), piece.size());
    if (got <= 0) break;
    text.append(piece.data(), static_cast<size_t>(got));
  }
  return text;
}

// Its process id, or -1. Its stdout is connected to the pipe.
pid_t start_child(int pipe) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string name = "ccom-doctor", argument = kListProviders;
  char* const arguments[] = {name.data(), argument.data(), nullptr};
  pid_t child = -1;
  if (::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, environ) != 0) child = -1;
  ::posix_spawn_file_actions_destroy(&actions);
  return child;
}

}  // namespace

int print_providers() {
  const Providers found = ask_libfabric();
  std::printf("%s\n", found.version.c_str());
  for (const std::string& name : found.names) std::printf("%s\n", name.c_str());
  std::fflush(stdout);
  return found.failure.empty() ? 0 : 1;
}

Providers list_providers(std::chrono::milliseconds limit) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {.failure = std::strerror(errno)};
  const Descriptor reads(ends[0]);
  Descriptor writes(ends[1]);
  const pid_t child = start_child(writes.get());
  writes = Descriptor();
  if (child < 0) return {.failure = "could not start the process that queries libfabric"};
  const Deadline deadline = Deadline::after(limit);
  std::istringstream lines(read_all(reads.get(), deadline));
  ::kill(child, SIGKILL);  // its output is complete
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  Providers found;
  std::getline(lines, found.version);
  for (std::string name; std::getline(lines, name);) found.names.push_back(name);
  if (deadline.passed()) {
    found.failure = "libfabric did not respond within " + std::to_string(limit.count()) + " ms";
  } else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
    found.failure = std::string("libfabric crashed: ") + ::strsignal(WTERMSIG(status));
  } else if (!found.version.empty() && found.names.empty()) {
    found.failure = "libfabric offers none";
  }
  return found;
}

}  // namespace ccom::doctor
