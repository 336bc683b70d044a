// SPDX-License-Identifier: Apache-2.0
//
// Python objects and the GIL without a binding generator: what is here serves extensions of pybind11 and of nanobind.
#pragma once

#include <Python.h>

#include <memory>

namespace ccom_python {

struct Release {
  void operator()(PyObject* object) const { Py_DECREF(object); }
};
// Owns one reference, or none. Destroyed with the GIL.
using Reference = std::unique_ptr<PyObject, Release>;

class WithGil {
 public:
  WithGil() : state_(PyGILState_Ensure()) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  const PyGILState_STATE state_;
};

class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace ccom_python
