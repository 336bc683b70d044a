// SPDX-License-Identifier: Apache-2.0
//
// One torch operation: a Work that owns its tensors until it is complete, and its futures.
#pragma once

#include <ATen/ThreadLocalState.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "queue.h"
#include "rethrow.h"

namespace ccom_torch {

// Thread-safe. Completed exactly once, by complete().
class Work : public c10d::Work {
 public:
  using Clock = std::chrono::steady_clock;

  // `title`: of the profiler's event from issue to completion; null for none.
  Work(int rank, c10d::OpType type, const char* title, const std::vector<at::Tensor>& inputs,
       std::vector<at::Tensor> outputs, uint64_t sequence);

  bool isCompleted() override { return done_.load(std::memory_order_acquire); }
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  // Blocking. timeout 0: the operation's own deadline. After a timeout the operation continues.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override {}
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return sequence_; }
  // Not used again by another work. In torch 2.15 and later: no `override`.
  virtual uint64_t getCompletionKey() const { return key_; }
  float getDuration() const override;  // ms spent in the operation itself

  c10d::OpType type() const { return opType_; }
  uint64_t sequence() const { return sequence_; }
  const std::vector<at::Tensor>& outputs() const { return outputs_; }
  void set_source(int rank) { source_ = rank; }
  void set_span(Clock::time_point started, Clock::time_point ended) { started_ = started, ended_ = ended; }
  Clock::time_point started() const { return started_; }
  Clock::time_point ended() const { return ended_; }
  // Accumulates the time blocked in wait().
  void count_waiting_in(std::shared_ptr<std::atomic<uint64_t>> nanoseconds) { waited_ = std::move(nanoseconds); }
  // wait() without a timeout runs what is queued there until this operation is complete.
  void set_queue(std::shared_ptr<Queue> queue) { queue_ = std::move(queue); }
  // Signals are looked at in wait().
  void set_interrupt(std::shared_ptr<Interrupt> interrupt) { interrupt_ = std::move(interrupt); }

  // Futures are completed by another thread, because their callbacks may wait, with the thread-local state of whoever
  // was the first to ask for one.
  void complete(std::exception_ptr error);
  // The caller's, for with_thread_state(): to capture it and to set it takes longer than a small operation.
  void keep_thread_state() { state_.emplace(); }
  // `call` runs in the thread that completes this work, or now if it is complete.
  void call_when_complete(std::function<void()> call);
  // Runs fn with the captured thread-local state, if there is one.
  template <typename Fn>
  void with_thread_state(Fn fn) {
    std::optional<at::ThreadLocalStateGuard> guard;
    if (state_.has_value()) guard.emplace(*state_);
    fn();
  }

 protected:
  // Makes progress until the operation is complete or the timeout has passed; by default only waits briefly.
  virtual void help(Clock::time_point until);
  // Runs handlers of signals. True if one has raised: the communicator's operations end, and wait() throws it.
  bool look_at_signals() { return interrupt_ != nullptr && interrupt_->look(); }

 private:
  void fulfil(c10::ivalue::Future& future);

  const uint64_t sequence_, key_;
  std::vector<at::Tensor> outputs_;
  int source_ = -1;
  Clock::time_point started_, ended_;
  std::shared_ptr<std::atomic<uint64_t>> waited_;
  std::shared_ptr<Interrupt> interrupt_;  // may be null
  std::shared_ptr<Queue> queue_;          // may be null
  std::optional<at::ThreadLocalState> state_, state_of_future_;
  mutable std::mutex guard_;
  std::condition_variable finished_;
  std::atomic<bool> done_{false};
  std::exception_ptr error_;                        // valid once done_
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // guarded by guard_
  std::function<void()> then_;                      // guarded by guard_
};

// Several works as one; complete when all are, with the first error.
c10::intrusive_ptr<Work> join_works(int rank, const std::vector<c10::intrusive_ptr<Work>>& parts);

}  // namespace ccom_torch
