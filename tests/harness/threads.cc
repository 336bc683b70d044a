// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/threads.h"

#include <execinfo.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/waiting.h"

namespace ccom {
namespace {

constexpr int kSignal = SIGUSR2;
std::atomic<int> places_shown{0};

void show_place(int) {
  void* frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), STDERR_FILENO);
  ++places_shown;
}

class Threads {
 public:
  Threads(const char* each, int count) : each_(std::string(each) + " "), has_ended_(static_cast<size_t>(count)) {}

  void start(const std::function<void(int)>& body) {
    for (size_t i = 0; i < has_ended_.size(); ++i) {
      threads_.emplace_back([this, i, &body] {
        SCOPED_TRACE(each_ + std::to_string(i));
        passes([&] { body(static_cast<int>(i)); });
        const std::lock_guard lock(mutex_);
        has_ended_[i] = true;
        ended_.notify_one();
      });
    }
  }

  void finish(std::chrono::milliseconds deadline) {
    std::unique_lock lock(mutex_);
    const auto all = [this] { return std::find(has_ended_.begin(), has_ended_.end(), false) == has_ended_.end(); };
    if (!ended_.wait_for(lock, deadline, all)) give_up(deadline);
    lock.unlock();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  [[noreturn]] void give_up(std::chrono::milliseconds deadline) {
    struct sigaction action {};
    action.sa_handler = show_place;
    ::sigaction(kSignal, &action, nullptr);
    for (size_t i = 0; i < has_ended_.size(); ++i) {
      if (has_ended_[i]) continue;
      std::fprintf(stderr, "%s%zu of %zu has not ended after %lld ms; it is at\n", each_.c_str(), i, has_ended_.size(),
                   static_cast<long long>(deadline.count()));
      const int before = places_shown;
      ::pthread_kill(threads_[i].native_handle(), kSignal);
      wait_until([before] { return places_shown > before; }, std::chrono::seconds(5));
    }
    std::abort();
  }

  const std::string each_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<bool> has_ended_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::chrono::milliseconds deadline_of_ranks() {
  const char* const limit = std::getenv("CCOM_TEST_TIMEOUT");
  return std::chrono::milliseconds(limit == nullptr ? 300000 : std::atoll(limit) * 5000 / 6);
}

void run_ranks(int ranks, const std::function<void(int)>& body, std::chrono::milliseconds deadline) {
  Threads all("rank", ranks);
  all.start(body);
  all.finish(deadline);
}

void run_threads(int threads, const std::function<void(int)>& body) {
  Threads all("thread", threads);
  all.start(body);
  all.finish(deadline_of_ranks());
}

bool passes(const std::function<void()>& body) {
  const testing::internal::HasNewFatalFailureHelper failures;
  try {
    body();
  } catch (const std::exception& thrown) {
    ADD_FAILURE() << "exception: " << thrown.what();
    return false;
  }
  return !failures.has_new_fatal_failure();
}

}  // namespace ccom
