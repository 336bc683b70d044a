// SPDX-License-Identifier: Apache-2.0
//
// What a long run is at, on stderr: "2 of 12 cases, now allreduce of 8 bytes, ring; 35 s, about 3 min left".
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace ccom::simtool {

class Progress {
 public:
  // The first line comes after one interval, so that short runs print none. On a terminal each replaces the one before.
  explicit Progress(std::chrono::milliseconds interval);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // More cases will be simulated.
  void expect(size_t cases);
  void begin(const std::string& what);
  void end();
  // Before the program prints something else to the same terminal.
  void clear();

 private:
  std::string line() const;
  void run();

  const std::chrono::milliseconds interval_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const bool replaces_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false, has_line_ = false;
  size_t cases_ = 0, done_ = 0;
  double done_seconds_ = 0;  // when the last case ended
  std::string now_;
  std::thread thread_;
};

// The line itself. Seconds left: as the cases that are done took, on average; at least, when this one takes longer.
std::string progress_text(size_t done, size_t cases, const std::string& now, double seconds, double done_seconds);

}  // namespace ccom::simtool
