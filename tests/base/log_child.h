// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace ccom {

constexpr size_t kPipeBytes = 4096;

// A child whose stderr is a small pipe; what it says is read only when the test asks for it.
class Child {
 public:
  explicit Child(const std::function<void()>& body) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    ::fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::alarm(60);
      ::dup2(ends[1], STDERR_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      body();
      ::_exit(0);
    }
    ::close(ends[1]);
    output_ = ends[0];
  }
  ~Child() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    ::close(output_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int wait() {
    int status = -1;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  // To the end of what it says; without its "ccom[PID] LEVEL (ROOM): ".
  std::vector<std::string> read() { return lines_of(rest()); }
  std::string rest() {
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(output_, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(got));
    return text;
  }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      const std::string line = text.substr(at, end - at);
      const size_t colon = line.find(": ");
      lines.push_back(colon == std::string::npos ? line : line.substr(colon + 2));
    }
    return lines;
  }
  int output() const { return output_; }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

inline void fill_stderr() {
  const char zero[kPipeBytes] = "\n";
  ::fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
  while (::write(STDERR_FILENO, zero, sizeof zero) > 0) {
  }
  while (::write(STDERR_FILENO, zero, 1) > 0) {
  }
  ::fcntl(STDERR_FILENO, F_SETFL, 0);
}

}  // namespace ccom
