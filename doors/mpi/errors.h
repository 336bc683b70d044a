// SPDX-License-Identifier: Apache-2.0
//
// Errors of ccom's calls as MPI's: a code whose string is ccom's text, given to the communicator's error handler.
#pragma once

#include <string>

#include "ccom/ccom.h"
#include "doors/mpi/mpi_below.h"

namespace ccom::mpi {

// MPI's code for an error of a communicator of ccom's. Such an error is final, so that one code is enough for it: it is
// kept in `kept`, which is 0 before.
int code_of(ccomResult_t result, const std::string& text, int& kept);

// Gives the code to the error handler of `comm`, and prints the whole text first unless that returns errors: what MPI
// prints before it aborts is cut, or only the class. `call`: MPI's name of it. Returns the code.
int raise(const char* call, Handle comm, int rank, int size, int code, const char* text);

}  // namespace ccom::mpi
