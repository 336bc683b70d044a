// SPDX-License-Identifier: Apache-2.0
//
// ccom's errors as exceptions of ccom.Error (ccom/_errors.py).
#pragma once

#include <ccom/ccom.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "../common/interrupt.h"

namespace ccom_core {

namespace nb = nanobind;

// What makes an exception: called with the result's number and the fields of ccomErrorInfo_t.
void make_errors_by(nb::object factory);
// The exception for an error of this kind; info.result says which.
nb::object exception_of(const ccomErrorInfo_t& info);
// The communicator's error if that is this result, which has all parts; else the calling thread's last one.
ccomErrorInfo_t error_info(ccomResult_t result, ccomComm_t comm = nullptr);
[[noreturn]] void raise(const ccomErrorInfo_t& info);

// For calls of this thread: an exception unless the result is ccomSuccess. Where a signal has ended the call, what its
// handler has raised.
inline void check(ccomResult_t result, ccom_python::Interrupt* interrupt = nullptr, ccomComm_t comm = nullptr) {
  if (result == ccomSuccess) [[likely]]
    return;
  const ccomErrorInfo_t info = error_info(result, comm);
  if (interrupt != nullptr && interrupt->restore()) throw nb::python_error();
  raise(info);
}

}  // namespace ccom_core
