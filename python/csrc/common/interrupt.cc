// SPDX-License-Identifier: Apache-2.0
#include "interrupt.h"

#include <Python.h>

#include <utility>

#include "reference.h"
#include "wakeups.h"

namespace ccom_python {
namespace {

// Another thread of Python's may hold the GIL for milliseconds, so short waits do without.
constexpr std::chrono::milliseconds kShortWait{200};

// Whose exception is still to be raised; by Python itself, should nobody restore it before.
std::atomic<Interrupt*> late{nullptr};

int restore_late(void*) {
  Interrupt* const interrupt = late.exchange(nullptr);
  return interrupt != nullptr && interrupt->restore() ? -1 : 0;
}

}  // namespace

Interrupt::~Interrupt() {
  Interrupt* self = this;
  late.compare_exchange_strong(self, nullptr);
}

// Whoever has not asked for a while has begun another wait.
bool Interrupt::is_due() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_asked_ > kShortWait) next_ = now + kShortWait;
  last_asked_ = now;
  if (now < next_) return false;
  next_ = now + kShortWait;
  return true;
}

bool Interrupt::look() {
  if (has_raised_.load(std::memory_order_acquire)) return true;
  if (Py_IsInitialized() == 0) return false;
  if (!is_main_thread()) {  // that one runs the handler itself, once its wait has ended
    if (!is_interrupt_stuck()) return false;
    has_raised_.store(true, std::memory_order_release);
    return true;
  }
  if (!is_due()) return false;
  const WithGil gil;
  if (PyErr_CheckSignals() == 0) return false;
  PyErr_Fetch(&raised_.type, &raised_.value, &raised_.traceback);
  has_raised_.store(true, std::memory_order_release);
  late.store(this);
  Py_AddPendingCall(&restore_late, nullptr);
  return true;
}

bool Interrupt::restore() {
  if (!has_raised_.load(std::memory_order_acquire) || !is_main_thread() || raised_.type == nullptr) return false;
  const Raised raised = std::exchange(raised_, Raised{});
  PyErr_Restore(raised.type, raised.value, raised.traceback);
  return true;
}

}  // namespace ccom_python
