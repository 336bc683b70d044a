// SPDX-License-Identifier: Apache-2.0
//
// One operation as torch sees it: a Work that owns its tensors until it is done, and the futures on it.
#pragma once

#include <ATen/ThreadLocalState.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace ccom_torch {

// Thread-safe. Completed exactly once, by complete().
class Work : public c10d::Work {
 public:
  using Clock = std::chrono::steady_clock;

  // `title`: of the profiler's event, which spans issue to completion; null without one.
  Work(int rank, c10d::OpType type, const char* title, const std::vector<at::Tensor>& inputs,
       std::vector<at::Tensor> outputs, uint64_t sequence);

  bool isCompleted() override { return done_.load(std::memory_order_acquire); }
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  // Blocking. timeout 0: as long as the operation's own deadline. A timeout leaves the operation under way.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override {}
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return sequence_; }
  float getDuration() const override;  // ms from start to end of the operation itself

  c10d::OpType type() const { return opType_; }
  uint64_t sequence() const { return sequence_; }
  void set_source(int rank) { source_ = rank; }
  void set_span(Clock::time_point started, Clock::time_point ended) { started_ = started, ended_ = ended; }
  Clock::time_point started() const { return started_; }
  Clock::time_point ended() const { return ended_; }
  // Where the time of blocking in wait() is added up.
  void count_waiting_in(std::shared_ptr<std::atomic<uint64_t>> nanoseconds) { waited_ = std::move(nanoseconds); }

  // Futures are fulfilled by another thread, with the thread-local state of the issuer: their callbacks may wait.
  void complete(std::exception_ptr error);
  void keep_thread_state() { state_.emplace(); }
  // Runs fn as if on the thread that kept its state.
  template <typename Fn>
  void with_thread_state(Fn fn) {
    const at::ThreadLocalStateGuard guard(*state_);
    fn();
  }

 protected:
  // Helps the operation along until it is done or the time is up; the default only waits a moment.
  virtual void help(Clock::time_point until);

 private:
  void fulfil(c10::ivalue::Future& future);

  const uint64_t sequence_;
  std::vector<at::Tensor> outputs_;
  int source_ = -1;
  Clock::time_point started_, ended_;
  std::shared_ptr<std::atomic<uint64_t>> waited_;
  std::optional<at::ThreadLocalState> state_;
  mutable std::mutex guard_;
  std::condition_variable finished_;
  std::atomic<bool> done_{false};
  std::exception_ptr error_;                        // valid once done_
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // guarded by guard_
};

// Several works as one; done when all are. Complete with the first error.
c10::intrusive_ptr<Work> join_works(int rank, const std::vector<c10::intrusive_ptr<Work>>& parts);

}  // namespace ccom_torch
