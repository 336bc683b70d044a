// SPDX-License-Identifier: Apache-2.0
//
// A communicator as an object of Python's. All of it is used with the GIL, which is released while ccom works.
#pragma once

#include <ccom/ccom.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "../common/call_site.h"
#include "../common/interrupt.h"
#include "../common/reference.h"
#include "array.h"
#include "errors.h"
#include "operators.h"

namespace ccom_core {

using ccom_python::Interrupt;
using ccom_python::WithoutGil;

inline void tell_call_site() {
  if (const char* const site = ccom_python::call_site_with_gil()) ccomSetCallSite(site);
}

// A started communicator on its way into the object that will own it.
struct Started {
  ccomComm_t comm = nullptr;
  std::shared_ptr<Interrupt> interrupt = std::make_shared<Interrupt>();

  Started() = default;
  Started(Started&& other) noexcept : comm(std::exchange(other.comm, nullptr)), interrupt(std::move(other.interrupt)) {}
  ~Started();
};

// Fields of ccomConfig_t from keyword arguments; the strings belong to the dict.
ccomConfig_t config_of(const nb::dict& settings, Interrupt& interrupt);

class Communicator {
 public:
  explicit Communicator(Started& started);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  bool is_closed() const { return comm_ == nullptr; }
  ccomComm_t comm() const;  // raises ValueError once it is closed
  int rank() const { return rank_; }
  int size() const { return size_; }
  Interrupt& interrupt() { return *interrupt_; }
  // Where operations are queued that nobody waits for at once; the first call makes it.
  ccomStream_t stream();
  Operators& operators() { return operators_; }

  // call() without the GIL, while this stays open; raises its error.
  template <typename Fn>
  void run(Fn&& call) {
    const ccomComm_t comm = this->comm();
    tell_call_site();
    ++*users_;
    ccomResult_t result;
    {
      const WithoutGil released;
      result = call(comm);
    }
    --*users_;
    check(result, interrupt_.get(), comm);
  }

  // Waits for this rank's operations, then frees it; again: nothing. Within a callback or an operator, for whose return
  // the wait would wait, another thread of Python's does it. In a forked child: forgets it.
  void close();
  // All there are, when the interpreter ends.
  static void close_all();

 private:
  ccomComm_t comm_;
  ccomStream_t stream_ = nullptr;
  std::shared_ptr<Interrupt> interrupt_;
  int rank_ = 0, size_ = 1;
  const std::shared_ptr<int> users_ = std::make_shared<int>(0);  // calls without the GIL
  const pid_t owner_ = ::getpid();
  Operators operators_;
};

}  // namespace ccom_core
