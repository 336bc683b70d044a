// SPDX-License-Identifier: Apache-2.0
#include "handle.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "communicator.h"

namespace ccom_core {
namespace {

using Clock = std::chrono::steady_clock;

struct Leftovers {
  std::mutex mutex;
  std::vector<std::unique_ptr<Kept>> all;
};
Leftovers& leftovers() {
  static auto* const instance = new Leftovers;
  return *instance;
}

// With the GIL.
void call(PyObject* function) {
  if (PyObject* const result = PyObject_CallFunctionObjArgs(function, nullptr)) {
    Py_DECREF(result);
  } else {
    PyErr_WriteUnraisable(function);
  }
  Py_DECREF(function);
}

}  // namespace

thread_local int WithinCallback::depth = 0;

void release_leftovers() {
  std::vector<std::unique_ptr<Kept>> taken;
  {
    const std::lock_guard lock(leftovers().mutex);
    taken.swap(leftovers().all);
  }
}

Pending::~Pending() {
  if (kept_ == nullptr) return;
  const std::lock_guard lock(leftovers().mutex);
  leftovers().all.push_back(std::move(kept_));
}

void Pending::finish(const ccomErrorInfo_t& info, int peer) {
  std::vector<PyObject*> callbacks;
  {
    const std::lock_guard lock(mutex_);
    info_ = info;
    peer_ = peer;
    is_done_ = true;
    callbacks.swap(callbacks_);
  }
  ended_.notify_all();
  if (callbacks.empty() || Py_IsInitialized() == 0) return;
  const ccom_python::WithGil gil;
  const WithinCallback within;
  for (PyObject* const function : callbacks) call(function);
}

bool Pending::is_done() const {
  const std::lock_guard lock(mutex_);
  return is_done_;
}

bool Pending::wait_for(std::chrono::nanoseconds time) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, time, [this] { return is_done_; });
}

nb::object Pending::result(const nb::object& communicator) {
  if (info_.result != ccomSuccess) {
    if (nb::cast<Communicator&>(communicator).interrupt().restore()) throw nb::python_error();
    raise(info_);
  }
  kept_->arrays.clear();
  kept_->objects.clear();
  return kept_->result;
}

void Pending::call_at_end(nb::object function) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_done_) {
      callbacks_.push_back(function.release().ptr());
      return;
    }
  }
  call(function.release().ptr());
}

Pending& Handle::pending() const {
  if (owner_ != ::getpid()) {
    ccomResult_t state = ccomSuccess;
    check(ccomCommGetAsyncError(nb::cast<Communicator&>(communicator_).comm(), &state));  // it says so
  }
  return *pending_;
}

nb::object Handle::wait(const nb::object& timeout) {
  double seconds = 1e9;
  if (!timeout.is_none()) seconds = PyFloat_AsDouble(timeout.ptr());
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  const auto limit = std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e9));
  const Clock::time_point until = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  Pending& pending = this->pending();
  while (!pending.is_done()) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now());
    if (left.count() <= 0) {
      PyErr_SetString(PyExc_TimeoutError, "the operation is not over; it goes on");
      throw nb::python_error();
    }
    bool is_done = false;
    {
      const WithoutGil released;
      is_done = pending.wait_for(std::min<std::chrono::nanoseconds>(left, Interrupt::kInterval));
    }
    if (!is_done && PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return pending.result(communicator_);
}

}  // namespace ccom_core
