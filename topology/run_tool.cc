// SPDX-License-Identifier: Apache-2.0
#include "topology/run_tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/descriptor.h"

namespace ccom {
namespace {

// Process attributes: stdin and stderr to /dev/null, stdout to the pipe, its own process group and signal mask.
// own.
class SpawnPlan {
 public:
  explicit SpawnPlan(int out) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// A child process: killed with its group, and reaped, unless it has ended.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (is_gone_) return;
    ::kill(-pid_, SIGKILL);
    // A process stuck in the kernel outlives this; waiting for it would block too.
    wait_for_end(Deadline::after(std::chrono::seconds(1)));
  }

  // Polls, because there is no wait with a timeout; a tool that has closed its output is about to end.
  bool wait_for_end(Deadline deadline) {
    for (;;) {
      const pid_t got = ::waitpid(pid_, &status_, WNOHANG);
      if (got == pid_) return is_gone_ = true;
      // The process reaps children elsewhere, or not at all (SIGCHLD ignored): the output has to suffice.
      if (got < 0 && errno == ECHILD) return is_gone_ = true;
      if (deadline.passed()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  int status() const { return status_; }

 private:
  pid_t pid_;
  int status_ = 0;
  bool is_gone_ = false;
};

Result<std::string> read_all(int fd, const char* name, size_t most_bytes, Deadline deadline) {
  std::string text;
  char buffer[4096];
  for (;;) {
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(deadline.left_ms() + 1, 60000)));
    if (ready < 0 && errno != EINTR) return system_error(errno, "wait for the output of %s", name);
    if (ready == 0 && deadline.passed()) return error(Code::Timeout, "run %s: it did not end in time", name);
    if (ready <= 0) continue;
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(errno, "read the output of %s", name);
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > most_bytes) return error(Code::SystemError, "run %s: it printed too much", name);
    if (deadline.passed()) return error(Code::Timeout, "run %s: it did not end in time", name);
  }
}

}  // namespace

Result<std::string> run_tool(const std::vector<std::string>& arguments, size_t most_bytes, Deadline deadline) {
  const char* name = arguments.front().c_str();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "make a pipe for %s", name);
  const Descriptor in(ends[0]);
  Descriptor out(ends[1]);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const SpawnPlan plan(out.get());
  if (const int failure = ::posix_spawn(&pid, name, plan.actions(), plan.attributes(), argv.data(), environ)) {
    return system_error(failure, "run %s", name);
  }
  Child child(pid);
  out = Descriptor();
  CCOM_TRY_ASSIGN(std::string text, read_all(in.get(), name, most_bytes, deadline));
  if (!child.wait_for_end(deadline)) return error(Code::Timeout, "run %s: it did not end in time", name);
  if (WIFSIGNALED(child.status())) {
    return error(Code::SystemError, "run %s: killed by signal %d", name, WTERMSIG(child.status()));
  }
  if (WEXITSTATUS(child.status()) != 0) {
    return error(Code::SystemError, "run %s: it ended with code %d", name, WEXITSTATUS(child.status()));
  }
  return text;
}

}  // namespace ccom
