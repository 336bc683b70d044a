// SPDX-License-Identifier: Apache-2.0
//
// Another user of the host, who tries all doors of a job over and over: sockets, ports, files, and what /proc shows of
// its processes.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <string>

#include "tests/harness/child.h"

namespace ccom {

// Shared by the test and the process of the stranger.
struct StrangerReport {
  static constexpr size_t kMaxRanks = 4;
  std::array<std::atomic<pid_t>, kMaxRanks> ranks{};  // whom to look at; 0: nobody
  std::atomic<bool> is_to_stop{false};
  // What it has found and could not get into.
  std::atomic<int> sockets{0}, ports{0}, files{0}, processes{0};
  std::atomic<int> sweeps{0};
  char entered[4096] = {};  // what it got into, a line each
};

class Stranger {
 public:
  Stranger();  // begins
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  StrangerReport& report() { return *report_; }
  // What it got into; ends it.
  std::string stop();

 private:
  StrangerReport* report_;
  Child process_;
};

}  // namespace ccom
