// SPDX-License-Identifier: Apache-2.0
//
// From which line of the Python program a collective is called, for ccom's errors and tools.
#pragma once

#include <Python.h>

#include <string>
#include <vector>

namespace ccom_python {

// Files below these folders are not the program: its line is the innermost one outside of them. Before this is called,
// and with CCOM_CALL_SITES=0, no lines are taken.
void take_call_sites(std::vector<std::string> folders);

// "train.py:220 (step)" of the calling thread, which may hold the GIL or not. In a thread without Python, or without
// the program's code: what is known of it. Valid for the life of the process. About 0.5 us; where others keep the GIL
// for long, lines are taken so seldom that it costs a hundredth of the time.
const char* call_site_of_python();

// The same of a thread that holds the GIL: about 0.1 us.
const char* call_site_with_gil();

// Has ccom ask `function`, a Python callable that returns a text, where this process is when it is in no call. Null: no
// more. With the GIL.
void locate_by(PyObject* function);

}  // namespace ccom_python
