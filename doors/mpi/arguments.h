// SPDX-License-Identifier: Apache-2.0
//
// Arguments of MPI's functions, as ccom wants them.
#pragma once

#include <cstdint>

#include "doors/mpi/elements.h"
#include "doors/mpi/handles.h"

namespace ccom::mpi {

inline bool is_in_place(const void* buffer) { return buffer == mpi().numbers.in_place; }

// A buffer of that many bytes that a call reads or writes.
inline bool is_buffer(const void* buffer, uint64_t bytes) {
  return !is_in_place(buffer) && (buffer != nullptr || bytes == 0);
}

// The same of elements; those of a derived type may have addresses of their own, from MPI_BOTTOM, which is null.
inline bool is_buffer(const void* buffer, const Elements& of, int64_t count) {
  return is_buffer(buffer, of.is_plain && count > 0 ? of.bytes_of(count) : 0);
}

inline constexpr ccomDataType_t kBytes = ccomUint8;  // of all that is moved only

// A reduction's type and operator.
struct Reduced {
  Reduced(Handle type_handle, Handle op_handle)
      : type(handles().type(mpi().plain(type_handle))), op(handles().op(mpi().plain(op_handle))) {}
  uint64_t bytes_of(int64_t count) const { return type == nullptr ? 0 : static_cast<uint64_t>(count) * type->bytes; }
  // Of calls that every rank may make in place.
  bool has_buffers(const void* send, const void* recv, int64_t count) const {
    return is_buffer(recv, bytes_of(count)) && (is_in_place(send) || is_buffer(send, bytes_of(count)));
  }
  const Type* const type;
  const Operator* const op;
};

inline constexpr const char* kUnequal =
    "what this rank sends to itself and what it receives from there differ in bytes";

}  // namespace ccom::mpi
