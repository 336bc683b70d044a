// SPDX-License-Identifier: Apache-2.0
#include "engine/stream.h"

namespace ccom {

void Milestone::complete(Status status) {
  const std::lock_guard lock(mutex_);
  result_ = std::move(status);
  changed_.notify_all();
}

std::optional<Status> Milestone::poll() const {
  const std::lock_guard lock(mutex_);
  return result_;
}

Status Milestone::wait(std::optional<Deadline> deadline) const {
  std::unique_lock lock(mutex_);
  const auto done = [this] { return result_.has_value(); };
  if (!deadline) {
    changed_.wait(lock, done);
  } else if (!changed_.wait_until(lock, deadline->when(), done)) {
    return error(Code::InProgress, "the event is not complete yet");
  }
  return *result_;
}

std::shared_ptr<Milestone> Event::recorded() const {
  const std::lock_guard lock(mutex_);
  return milestone_;
}

void Event::record(std::shared_ptr<Milestone> milestone) {
  const std::lock_guard lock(mutex_);
  milestone_ = std::move(milestone);
}

Stream::Stream() : thread_([this] { run(); }) {}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    arrived_.notify_all();
  }
  thread_.join();
}

void Stream::enqueue(Work work) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  arrived_.notify_one();
}

void Stream::enqueue_callback(std::function<void(const Status&)> callback) {
  enqueue([this, callback = std::move(callback)] {
    Status state;
    {
      const std::lock_guard lock(mutex_);
      state = first_error_;
    }
    callback(state);
    return Status();
  });
}

void Stream::record(Event& event) {
  auto milestone = std::make_shared<Milestone>();
  event.record(milestone);
  enqueue_callback([milestone](const Status& state) { milestone->complete(state); });
}

void Stream::wait_for(const Event& event) {
  const std::shared_ptr<Milestone> milestone = event.recorded();
  if (milestone == nullptr) return;
  enqueue([milestone] { return milestone->wait(std::nullopt); });
}

Status Stream::query() const {
  const std::lock_guard lock(mutex_);
  if (!first_error_.is_ok()) return first_error_;
  return queue_.empty() && !running_ ? Status() : error(Code::InProgress, "operations are queued");
}

Status Stream::synchronize(std::optional<Deadline> deadline) {
  std::unique_lock lock(mutex_);
  const auto empty = [this] { return queue_.empty() && !running_; };
  if (!deadline) {
    idle_.wait(lock, empty);
  } else if (!idle_.wait_until(lock, deadline->when(), empty)) {
    return error(Code::Timeout, "the stream still has operations queued");
  }
  return std::exchange(first_error_, Status());
}

namespace {

// An exception must not end the process from a library's thread.
Status contained(const Stream::Work& work) {
  try {
    return work();
  } catch (const std::exception& exception) {
    return error(Code::InternalError, "an operation on a stream failed: %s", exception.what());
  }
}

}  // namespace

void Stream::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    arrived_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    running_ = true;
    lock.unlock();
    Status status = contained(work);
    work = nullptr;
    lock.lock();
    running_ = false;
    if (first_error_.is_ok()) first_error_ = std::move(status);
    if (queue_.empty()) idle_.notify_all();
  }
}

}  // namespace ccom
