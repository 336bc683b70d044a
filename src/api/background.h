// SPDX-License-Identifier: Apache-2.0
//
// What a non-blocking call does in a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "base/wait_limit.h"

namespace ccom {

// What a handle says whose work has not ended.
Status call_under_way();

// One piece of work at a time. The destructor waits for it.
class Background {
 public:
  Background() = default;
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Any thread. InvalidUsage while other work runs, SystemError if there is no thread for it: then it does not run.
  Status run(std::function<Status()> work);
  // Any thread.
  bool is_running() const { return is_running_.load(std::memory_order_acquire); }
  // Of the work that has ended last; Ok before any. Not while work runs.
  const Status& result() const { return result_; }
  // Until no work runs. Not by the work itself.
  void wait();
  // Asks the work to end: interruption() of this object returns true from now on.
  void cancel() { cancelled_->store(true, std::memory_order_relaxed); }
  // `given`, or that cancel() was called; may outlive this object.
  Interrupted interruption(Interrupted given) const;

 private:
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
  std::atomic<bool> is_running_{false};
  Status result_;
  Mutex starting_;
  std::jthread thread_ CCOM_GUARDED_BY(starting_);  // last: joined before the rest goes
};

}  // namespace ccom
