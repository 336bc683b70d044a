// SPDX-License-Identifier: Apache-2.0
//
// Ranks as processes: starts a program n times, reads their lines, kills, and leaves nothing behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/harness/folder.h"

namespace ccom {

class Job {
 public:
  using Environment = std::map<std::string, std::string>;

  // The program is one of the test's PROGRAMS, or a path. `environment(rank)` is added to that of the test; so are
  // CCOM_RANK, CCOM_NRANKS and CCOM_URL, unless it has them.
  Job(const std::string& name, int nranks, const std::vector<std::string>& arguments,
      const std::function<Environment(int)>& environment);
  // Kills what still runs.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Reads until every rank of `ranks` has said a line that begins with `prefix`. False at the deadline.
  bool wait_for(const std::string& prefix, const std::vector<int>& ranks, std::chrono::milliseconds at_most);
  // The first line of a rank that begins with `prefix`, or "".
  std::string line(int rank, const std::string& prefix) const;
  const std::vector<std::string>& lines(int rank) const { return ranks_[static_cast<size_t>(rank)].lines; }
  // Only lines that are read from now on count.
  void forget_lines();
  // When that line was read, since the start of the clock.
  std::chrono::steady_clock::time_point when(int rank, const std::string& prefix) const;
  void kill(int rank) { signal(rank, SIGKILL); }
  void signal(int rank, int number);
  pid_t pid(int rank) const { return ranks_[static_cast<size_t>(rank)].pid; }
  // Waits for the end of all; false if one still runs at the deadline.
  bool finish(std::chrono::milliseconds at_most);
  std::string transcript() const;

 private:
  struct Process {
    pid_t pid = -1;
    int output = -1;
    bool has_ended_output = false;
    std::string partial{};
    std::vector<std::string> lines{};
    std::vector<std::chrono::steady_clock::time_point> times{};
  };
  void read_some(int timeout_ms);

  const TemporaryFolder folder_{"/tmp"};
  std::vector<Process> ranks_;
};

}  // namespace ccom
