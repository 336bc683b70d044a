// SPDX-License-Identifier: Apache-2.0
#include "completions.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace ccom_torch {
namespace {

// One thread more than there are blocked tasks. Idle threads end after a while.
class Pool {
 public:
  void post(std::function<void()> task) {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    ++unfinished_;
    if (idle_ >= tasks_.size()) {
      arrived_.notify_one();
    } else {
      std::thread([this] { run(); }).detach();
      ++idle_;
    }
  }

  void drain(double seconds) {
    std::unique_lock lock(mutex_);
    finished_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return unfinished_ == 0; });
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), "ccom-futures");
    std::unique_lock lock(mutex_);
    while (arrived_.wait_for(lock, std::chrono::seconds(5), [&] { return !tasks_.empty(); })) {
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      --idle_;
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
      ++idle_;
      if (--unfinished_ == 0) finished_.notify_all();
    }
    --idle_;
  }

  std::mutex mutex_;
  std::condition_variable arrived_, finished_;
  std::deque<std::function<void()>> tasks_;
  size_t idle_ = 0;  // threads that wait or are about to
  size_t unfinished_ = 0;
};

// Never destroyed: its threads may outlive static destruction. A forked child, in which none of them exists, creates
// its own.
Pool*& pool() {
  static Pool* instance = [] {
    pthread_atfork(nullptr, nullptr, [] { pool() = new Pool; });
    return new Pool;
  }();
  return instance;
}

}  // namespace

void complete_elsewhere(std::function<void()> task) { pool()->post(std::move(task)); }
void drain_completions(double seconds) { pool()->drain(seconds); }

}  // namespace ccom_torch
