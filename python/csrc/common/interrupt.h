// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C, and other signals whose handler in Python raises an exception, while the main thread waits without the GIL:
// Python itself only looks at them between two instructions of its own.
#pragma once

#include <Python.h>

#include <atomic>
#include <chrono>

namespace ccom_python {

// Of one communicator, which is aborted when a handler raises: its operation cannot be continued. Thread-safe.
class Interrupt {
 public:
  // A waiting thread that asks at least this often loses no time.
  static constexpr std::chrono::milliseconds kInterval{50};

  Interrupt() = default;
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // To be called every few milliseconds by threads that wait. In Python's main thread it runs the handlers of signals
  // that have come, once the wait has lasted for some time. True from the moment at which one has raised an exception,
  // or, in other threads, at which Ctrl-C has waited for the main thread in vain (wakeups.h).
  bool look();
  bool has_raised() const { return has_raised_.load(std::memory_order_acquire); }
  // Makes that exception Python's current one, once, in the main thread; else false. With the GIL. Where nobody does,
  // as when other libraries' code calls ccom, Python raises it itself, before its next instruction.
  bool restore();

 private:
  bool is_due();

  std::atomic<bool> has_raised_{false};
  // Of the main thread.
  struct Raised {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  } raised_;
  std::chrono::steady_clock::time_point last_asked_, next_;
};

}  // namespace ccom_python
