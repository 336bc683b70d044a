// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/harness/child.h"

namespace ccom {

constexpr size_t kPipeBytes = 4096;

// A child whose stderr is a small pipe; what it says is read only when the test asks for it.
class LoggingChild {
 public:
  explicit LoggingChild(const std::function<void()>& body)
      : ends_(small_pipe()), child_([&] {
          ::dup2(ends_[1], STDERR_FILENO);
          ::close(ends_[0]);
          ::close(ends_[1]);
          body();
          return 0;
        }) {
    ::close(ends_[1]);
  }
  ~LoggingChild() { ::close(ends_[0]); }
  LoggingChild(const LoggingChild&) = delete;
  LoggingChild& operator=(const LoggingChild&) = delete;

  int wait() { return child_.wait(); }
  // To the end of what it says; without its "ccom[PID] LEVEL (ROOM): ".
  std::vector<std::string> read() { return lines_of(rest()); }
  std::string rest() {
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(output(), buffer, sizeof buffer)) > 0;)
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
  int output() const { return ends_[0]; }

 private:
  static std::array<int, 2> small_pipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) std::abort();
    ::fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);
    return ends;
  }
  const std::array<int, 2> ends_;
  Child child_;
};

// What a child says that runs `body` and then ends as a program does, without an error.
inline std::vector<std::string> said_by(const std::function<void()>& body) {
  LoggingChild child([&body] {
    body();
    std::exit(0);
  });
  EXPECT_EQ(child.wait(), 0);
  return child.read();
}

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
