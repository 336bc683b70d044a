// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include "../common/interrupt.h"

namespace ccom_torch {

using ccom_python::Interrupt;

// Throws what a signal's handler has raised during a wait, once, in the main thread; else nothing.
inline void rethrow(Interrupt& interrupt) {
  if (!interrupt.has_raised()) return;
  const pybind11::gil_scoped_acquire gil;
  if (interrupt.restore()) throw pybind11::error_already_set();
}

}  // namespace ccom_torch
