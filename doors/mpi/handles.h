// SPDX-License-Identifier: Apache-2.0
//
// MPI's predefined types and operators as ccom's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ccom/ccom.h"
#include "doors/mpi/mpi_below.h"

namespace ccom::mpi {

// MPI's groups of types, which say what operators a type has. Opaque: moved only.
enum class Family : uint8_t { Signed, Unsigned, Real, Complex, Logical, Byte, Opaque };

// A predefined type whose elements follow each other without gaps.
struct Type {
  Handle handle = 0;
  Family family = Family::Opaque;
  uint8_t bytes = 0;
  bool reduces = false;
  ccomDataType_t type = ccomUint8;  // if it reduces
};

struct Operator {
  Handle handle = 0;
  ccomBuiltinOp_t op = ccomSum;
  uint8_t families = 0;  // bits of Family: those that MPI allows it for
};

// Of the MPI below. Read-only once made.
class Handles {
 public:
  explicit Handles(const MpiBelow& below);
  // Null: another type, or operator.
  const Type* type(Handle handle) const { return find(types_, handle); }
  const Operator* op(Handle handle) const { return find(operators_, handle); }
  Handle byte, floats, sum, ints, min, max, doubles, longs;  // for calls of our own

 private:
  template <typename T>
  using Table = std::array<T, 256>;

  static size_t place_of(Handle handle) { return (handle * 0x9e3779b97f4a7c15U) >> 56; }
  template <typename T>
  static const T* find(const Table<T>& table, Handle handle) {
    for (size_t i = place_of(handle); table[i].handle != 0; i = (i + 1) % table.size())
      if (table[i].handle == handle) return &table[i];
    return nullptr;
  }
  template <typename T>
  static void add(Table<T>& table, const T& entry) {
    size_t i = place_of(entry.handle);
    while (table[i].handle != 0 && table[i].handle != entry.handle) i = (i + 1) % table.size();
    table[i] = entry;
  }

  Table<Type> types_{};
  Table<Operator> operators_{};
};

// Made with mpi().
const Handles& handles();

}  // namespace ccom::mpi
