// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/progress.h"

#include <unistd.h>

#include <cstdio>

#include "base/text.h"

namespace ccom::simtool {
namespace {

std::string duration(double seconds) {
  return seconds < 120 ? printed("%.0f s", seconds) : printed("%.0f min", seconds / 60);
}

}  // namespace

std::string progress_text(size_t done, size_t cases, const std::string& now, double seconds, double done_seconds) {
  std::string text =
      std::to_string(done) + " of " + std::to_string(cases) + " cases, now " + now + "; " + duration(seconds);
  if (done == 0) return text;
  const double average = done_seconds / static_cast<double>(done), of_now = seconds - done_seconds;
  if (of_now <= average) {
    return text + ", about " + duration(average * static_cast<double>(cases - done) - of_now) + " left";
  }
  // This case is a long one: nothing is known of it, and those that follow may be as long.
  return text + ", at least " + duration(average * static_cast<double>(cases - done - 1)) + " left";
}

Progress::Progress(std::chrono::milliseconds interval)
    : interval_(interval), replaces_(::isatty(STDERR_FILENO) == 1), thread_([this] { run(); }) {}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_all();
  thread_.join();
  clear();
}

void Progress::expect(size_t cases) {
  const std::lock_guard lock(mutex_);
  cases_ += cases;
}

void Progress::begin(const std::string& what) {
  const std::lock_guard lock(mutex_);
  now_ = what;
}

void Progress::end() {
  const std::lock_guard lock(mutex_);
  ++done_;
  done_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  if (!has_line_ || !replaces_) return;
  std::fputs("\r\033[K", stderr);
  has_line_ = false;
}

void Progress::run() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, interval_, [this] { return has_ended_; })) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const std::string text = progress_text(done_, cases_, now_, seconds, done_seconds_);
    std::fprintf(stderr, replaces_ ? "\r\033[Kccom-sim: %s" : "ccom-sim: %s\n", text.c_str());
    std::fflush(stderr);
    has_line_ = true;
  }
}

}  // namespace ccom::simtool
