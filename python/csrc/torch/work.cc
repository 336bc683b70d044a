// SPDX-License-Identifier: Apache-2.0
#include "work.h"

#include <c10/util/Exception.h>
#include <pybind11/pybind11.h>
#include <sched.h>

#include "completions.h"
#include "types.h"

namespace ccom_torch {
namespace {

// Sleeping and waking up costs about this much, so it only pays for longer waits.
constexpr std::chrono::microseconds kPolling{50};

uint64_t next_key() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

c10::intrusive_ptr<c10::ivalue::Future> make_future() {
  return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
}

}  // namespace

Work::Work(int rank, c10d::OpType type, const char* title, const std::vector<at::Tensor>& inputs,
           std::vector<at::Tensor> outputs, uint64_t sequence)
    : c10d::Work(rank, type, title, title == nullptr ? std::nullopt : std::optional<std::vector<at::Tensor>>(inputs)),
      sequence_(sequence),
      key_(next_key()),
      outputs_(std::move(outputs)) {}

bool Work::isSuccess() const { return done_.load(std::memory_order_acquire) && error_ == nullptr; }

std::exception_ptr Work::exception() const { return done_.load(std::memory_order_acquire) ? error_ : nullptr; }

int Work::sourceRank() const {
  TORCH_CHECK(source_ >= 0, "ccom: this operation has no source rank, or is not complete");
  return source_;
}

std::vector<at::Tensor> Work::result() {
  TORCH_CHECK(done_.load(std::memory_order_acquire), "ccom: the operation is not complete, call wait() first");
  return outputs_;
}

float Work::getDuration() const {
  TORCH_CHECK(done_.load(std::memory_order_acquire), "ccom: the operation is not complete");
  return std::chrono::duration<float, std::milli>(ended_ - started_).count();
}

void Work::help(Clock::time_point until) {
  const bool may_run = queue_ != nullptr && until == Clock::time_point::max();  // what it runs has its own deadlines
  Clock::time_point polling_ends = std::min(until, Clock::now() + kPolling);
  while (!done_.load(std::memory_order_acquire)) {
    if (may_run && queue_->run_next()) {
      polling_ends = Clock::now() + kPolling;
    } else if (Clock::now() >= polling_ends) {
      break;
    } else {
      sched_yield();
    }
  }
  std::unique_lock lock(guard_);
  const auto is_done = [&] { return done_.load(std::memory_order_relaxed); };
  while (true) {
    const Clock::time_point next = std::min(until, Clock::now() + Interrupt::kInterval);
    if (finished_.wait_until(lock, next, is_done) || next == until) return;
    lock.unlock();
    if (look_at_signals()) rethrow(*interrupt_);
    lock.lock();
  }
}

bool Work::wait(std::chrono::milliseconds timeout) {
  if (!done_.load(std::memory_order_acquire)) {
    const Clock::time_point begin = Clock::now();
    help(timeout <= kNoTimeout ? Clock::time_point::max() : begin + timeout);
    if (waited_ != nullptr) waited_->fetch_add((Clock::now() - begin).count(), std::memory_order_relaxed);
  }
  if (interrupt_ != nullptr) rethrow(*interrupt_);
  if (!done_.load(std::memory_order_acquire)) {
    raise("ccom: operation " + std::to_string(sequence_) + " (" + c10d::opTypeToString(opType_) +
          ") is not complete: Operation timed out! [ Timed out waiting " + std::to_string(timeout.count()) + " ms ]");
  }
  if (error_ != nullptr) std::rethrow_exception(error_);
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    std::lock_guard lock(guard_);
    if (future_ != nullptr) return future_;
    future = future_ = make_future();
    if (!done_.load(std::memory_order_relaxed)) {
      state_of_future_.emplace();
      return future;
    }
  }
  fulfil(*future);
  return future;
}

void Work::fulfil(c10::ivalue::Future& future) {
  if (error_ != nullptr) {
    future.setError(error_);
  } else {
    future.markCompleted(c10::IValue(outputs_));
  }
}

void Work::complete(std::exception_ptr error) {
  error_ = error;
  // Ends the profiler's event first: after the wait, the user may end the profile and free its buffer.
  finish(std::move(error));
  c10::intrusive_ptr<c10::ivalue::Future> future;
  std::function<void()> then;
  {
    std::lock_guard lock(guard_);
    done_.store(true, std::memory_order_release);
    future = future_;
    then = std::move(then_);
  }
  finished_.notify_all();
  if (then != nullptr) then();
  if (future == nullptr) return;
  auto self = c10::intrusive_ptr<Work>::unsafe_reclaim_from_nonowning(this);
  complete_elsewhere([self = std::move(self), future = std::move(future)] {
    const at::ThreadLocalStateGuard guard(*self->state_of_future_);
    self->fulfil(*future);
  });
}

void Work::call_when_complete(std::function<void()> call) {
  {
    std::lock_guard lock(guard_);
    if (!done_.load(std::memory_order_relaxed)) {
      then_ = std::move(call);
      return;
    }
  }
  call();
}

namespace {

class Joined final : public Work {
 public:
  Joined(int rank, std::vector<at::Tensor> outputs, std::vector<c10::intrusive_ptr<Work>> parts)
      : Work(rank, c10d::OpType::COALESCED, nullptr, {}, std::move(outputs), 0),
        parts_(std::move(parts)),
        left_(parts_.size() + 1) {}

  // Called for each part, and once more when that has been arranged.
  void count_completed() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    std::exception_ptr first;
    for (const auto& part : parts_) {
      if (first == nullptr) first = part->exception();
    }
    if (!parts_.empty()) set_span(parts_.front()->started(), Clock::now());
    complete(first);
  }

 protected:
  void help(Clock::time_point until) override {
    for (const auto& part : parts_) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
      try {
        if (until == Clock::time_point::max()) {
          part->wait();
        } else {
          part->wait(std::max(left, std::chrono::milliseconds(1)));
        }
      } catch (const pybind11::error_already_set&) {  // by a signal
        throw;
      } catch (...) {
        if (!part->isCompleted()) return;  // timed out
      }
    }
    Work::help(until);  // the last part is complete, this work may be about to
  }

 private:
  const std::vector<c10::intrusive_ptr<Work>> parts_;
  std::atomic<size_t> left_;
};

}  // namespace

c10::intrusive_ptr<Work> join_works(int rank, const std::vector<c10::intrusive_ptr<Work>>& parts) {
  std::vector<at::Tensor> outputs;
  for (const auto& part : parts) outputs.insert(outputs.end(), part->outputs().begin(), part->outputs().end());
  auto joined = c10::make_intrusive<Joined>(rank, std::move(outputs), parts);
  for (const auto& part : parts) part->call_when_complete([joined] { joined->count_completed(); });
  joined->count_completed();
  return joined;
}

}  // namespace ccom_torch
