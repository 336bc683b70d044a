// SPDX-License-Identifier: Apache-2.0
//
// Arguments of MPI's functions, as ccom wants them.
#pragma once

#include <cstdint>

#include "doors/mpi/handles.h"

namespace ccom::mpi {

inline bool is_in_place(const void* buffer) { return buffer == mpi().numbers.in_place; }

inline constexpr ccomDataType_t kBytes = ccomUint8;  // of all that is moved only

// A reduction's type and operator.
struct Reduced {
  Reduced(Handle type_handle, Handle op_handle)
      : type(handles().type(mpi().plain(type_handle))), op(handles().op(mpi().plain(op_handle))) {}
  uint64_t bytes_of(int64_t count) const { return type == nullptr ? 0 : static_cast<uint64_t>(count) * type->bytes; }
  const Type* const type;
  const Operator* const op;
};

inline constexpr const char* kUnequal =
    "what this rank sends to itself and what it receives from there differ in bytes";

}  // namespace ccom::mpi
