// SPDX-License-Identifier: Apache-2.0
//
// An operation that nobody waits for at once: done(), wait(), and callbacks, by which asyncio learns of its end.
#pragma once

#include <ccom/ccom.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "array.h"

namespace ccom_core {

class Communicator;

// While it lives, this thread runs a function of Python's that an operation of ccom waits for.
class WithinCallback {
 public:
  WithinCallback() { ++depth; }
  ~WithinCallback() { --depth; }
  WithinCallback(const WithinCallback&) = delete;
  WithinCallback& operator=(const WithinCallback&) = delete;
  static bool is_here() { return depth > 0; }

 private:
  static thread_local int depth;
};

// What an operation needs until it is over, and gives then.
struct Kept {
  std::vector<Array> arrays;
  std::vector<nb::object> objects;
  nb::object result;
};

// Shared by the handle and the operation; the last of them may let go of it without the GIL.
class Pending {
 public:
  explicit Pending(Kept kept) : kept_(std::make_unique<Kept>(std::move(kept))) {}
  ~Pending();
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  // Without the GIL, once.
  void finish(const ccomErrorInfo_t& info, int peer);

  bool is_done() const;
  int peer() const { return peer_; }
  // At most for the time; false if it is not done then. Without the GIL.
  bool wait_for(std::chrono::nanoseconds time);
  // With the GIL. The result of a finished operation, or its exception.
  nb::object result(const nb::object& communicator);
  // At the end, or now if it is over: in a thread of ccom's, or in this one.
  void call_at_end(nb::object function);

 private:
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  bool is_done_ = false;
  ccomErrorInfo_t info_ = CCOM_ERROR_INFO_INIT;
  int peer_ = -1;
  std::vector<PyObject*> callbacks_;
  std::unique_ptr<Kept> kept_;
};

class Handle {
 public:
  Handle(nb::object communicator, std::shared_ptr<Pending> pending)
      : communicator_(std::move(communicator)), pending_(std::move(pending)) {}
  bool is_done() const { return pending().is_done(); }
  int peer() const { return pending().peer(); }
  // timeout: seconds, or None for the operation's own.
  nb::object wait(const nb::object& timeout);
  void add_done_callback(nb::object function) { pending().call_at_end(std::move(function)); }

 private:
  // Raises in a forked child, where nobody finishes it and its mutex may be held for ever.
  Pending& pending() const;

  const pid_t owner_ = ::getpid();
  nb::object communicator_;
  std::shared_ptr<Pending> pending_;
};

// What finished operations kept and could not release, for lack of the GIL.
void release_leftovers();

}  // namespace ccom_core
