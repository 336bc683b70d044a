// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

#include <algorithm>
#include <cstdio>

namespace ccom_core {
namespace {

PyObject* factory = nullptr;

}  // namespace

void make_errors_by(nb::object function) {
  Py_XDECREF(factory);
  factory = function.release().ptr();
}

nb::object exception_of(const ccomErrorInfo_t& info) {
  nb::list ranks;
  for (int i = 0; i < std::min(info.nPeers, CCOM_MAX_ERROR_PEERS); ++i) ranks.append(info.peers[i]);
  return nb::handle(factory)(static_cast<int>(info.result), nb::str(info.text), nb::str(info.operation), ranks,
                             nb::str(info.host), nb::str(info.cure), nb::str(info.key), info.sequence, info.sysErrno);
}

ccomErrorInfo_t error_info(ccomResult_t result, ccomComm_t comm) {
  ccomErrorInfo_t info = CCOM_ERROR_INFO_INIT;
  const bool is_communicators =
      comm != nullptr && ccomGetErrorInfo(comm, &info) == ccomSuccess && info.result == result;
  if (!is_communicators) ccomGetErrorInfo(nullptr, &info);
  if (info.result != result || info.text[0] == '\0')
    std::snprintf(info.text, sizeof info.text, "%s", ccomGetErrorString(result));
  info.result = result;
  return info;
}

void raise(const ccomErrorInfo_t& info) {
  const nb::object exception = exception_of(info);
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  throw nb::python_error();
}

}  // namespace ccom_core
