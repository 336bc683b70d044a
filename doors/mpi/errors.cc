// SPDX-License-Identifier: Apache-2.0
#include "doors/mpi/errors.h"

#include <array>
#include <cstdio>

namespace ccom::mpi {
namespace {

// 0: this MPI gives no such code.
int code_with(int error_class, const std::string& text) {
  int code = 0;
  std::array<char, 8192> told{};
  int length = 0;
  const bool is_made = mpi().Add_error_code(error_class, &code) == kSuccess &&
                       mpi().Add_error_string(code, text.c_str()) == kSuccess &&
                       mpi().Error_string(code, told.data(), &length) == kSuccess;
  return is_made && text == told.data() ? code : 0;
}

// A code of that class with the text as its string. MPICH 4.0 has none but in classes that are new; then it is that.
int error_code(int error_class, const std::string& text) {
  if (const int code = code_with(error_class, text)) return code;
  int new_class = 0;
  if (mpi().Add_error_class(&new_class) != kSuccess) return error_class;
  const int code = code_with(new_class, text);
  return code == 0 ? error_class : code;
}

}  // namespace

int code_of(ccomResult_t result, const std::string& text, int& kept) {
  const Numbers& numbers = mpi().numbers;
  if (result == ccomInvalidArgument || result == ccomInvalidUsage) return numbers.err_arg;
  if (kept == 0) {
    const int error_class = result == ccomOutOfMemory     ? numbers.err_no_mem
                            : result == ccomInternalError ? numbers.err_intern
                                                          : numbers.err_other;
    kept = error_code(error_class, text.substr(0, static_cast<size_t>(numbers.max_error_string) - 1));
  }
  return kept;
}

int raise(const char* call, Handle comm, int rank, int size, int code, const char* text) {
  Handle handler = 0;
  mpi().Comm_get_errhandler(comm, &handler);
  if (mpi().plain(handler) != mpi().errors_return)
    std::fprintf(stderr, "ccom: %s on rank %d of %d: %s\n", call, rank, size, text);
  if (handler != 0) mpi().Errhandler_free(&handler);
  mpi().Comm_call_errhandler(comm, code);
  return code;
}

}  // namespace ccom::mpi
