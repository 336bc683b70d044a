// SPDX-License-Identifier: Apache-2.0
//
// The elements of a buffer as bytes that follow each other. Predefined types without gaps are that already; others are
// packed and unpacked by MPI, whose packed form is those bytes where all ranks are alike, as on one kind of machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "doors/mpi/handles.h"

namespace ccom::mpi {

struct Elements {
  explicit Elements(Handle type);

  uint64_t bytes_of(int64_t count) const { return static_cast<uint64_t>(count) * bytes; }
  std::byte* at(void* buffer, int64_t element) const { return static_cast<std::byte*>(buffer) + element * extent; }
  const std::byte* at(const void* buffer, int64_t element) const {
    return static_cast<const std::byte*>(buffer) + element * extent;
  }
  void pack(const void* from, int64_t count, std::byte* to, Handle comm) const;
  void unpack(const std::byte* from, void* to, int64_t count, Handle comm) const;

  Handle type;
  bool is_plain = false;  // bytes already
  bool is_valid = true;
  uint64_t bytes = 0;  // of one, as packed
  Aint extent = 0;
};

// Memory for packed elements, if a call needs some; kept by the thread for its next calls if it is small.
class Room {
 public:
  Room() = default;
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  std::byte* take(uint64_t bytes);
  // Where ccom writes `count` elements: in the program's buffer, or here, from where they are to be unpacked.
  std::byte* place(const Elements& of, void* buffer, int64_t count) {
    return of.is_plain ? static_cast<std::byte*>(buffer) : take(of.bytes_of(count));
  }
  // Where ccom writes what is MPI's result in `recv`: in place elsewhere, because MPI leaves the rest of it alone.
  void* result(const void* send, void* recv, uint64_t bytes) {
    return send == mpi().numbers.in_place ? take(bytes) : recv;
  }
  // What ccom reads of `count` elements: the program's buffer, or a packed copy here.
  const std::byte* packed(const Elements& of, const void* buffer, int64_t count, Handle comm);

 private:
  std::vector<std::byte> memory_;
};

}  // namespace ccom::mpi
