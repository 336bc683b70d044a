// SPDX-License-Identifier: Apache-2.0
#include "doors/mpi/handles.h"

#include <string>

namespace ccom::mpi {
namespace {

struct Named {
  const char* open_mpi;  // behind "ompi_mpi_"
  uint32_t mpich;        // its second byte from below is the size
  Family family;
};

// MPI_CHAR is a character, which has no operators, unlike MPI_SIGNED_CHAR.
constexpr Named kTypes[] = {
    {"char", 0x4c000101, Family::Opaque},
    {"wchar", 0x4c00040e, Family::Opaque},
    {"packed", 0x4c00010f, Family::Opaque},
    {"character", 0x4c00011a, Family::Opaque},
    {"logical", 0x4c00041d, Family::Opaque},
    {"long_double", 0x4c00100c, Family::Opaque},
    {"byte", 0x4c00010d, Family::Byte},
    {"signed_char", 0x4c000118, Family::Signed},
    {"short", 0x4c000203, Family::Signed},
    {"int", 0x4c000405, Family::Signed},
    {"long", 0x4c000807, Family::Signed},
    {"long_long_int", 0x4c000809, Family::Signed},
    {"int8_t", 0x4c000137, Family::Signed},
    {"int16_t", 0x4c000238, Family::Signed},
    {"int32_t", 0x4c000439, Family::Signed},
    {"int64_t", 0x4c00083a, Family::Signed},
    {"aint", 0x4c000843, Family::Signed},
    {"offset", 0x4c000844, Family::Signed},
    {"count", 0x4c000845, Family::Signed},
    {"integer", 0x4c00041b, Family::Signed},
    {"integer1", 0x4c00012d, Family::Signed},
    {"integer2", 0x4c00022f, Family::Signed},
    {"integer4", 0x4c000430, Family::Signed},
    {"integer8", 0x4c000831, Family::Signed},
    {"unsigned_char", 0x4c000102, Family::Unsigned},
    {"unsigned_short", 0x4c000204, Family::Unsigned},
    {"unsigned", 0x4c000406, Family::Unsigned},
    {"unsigned_long", 0x4c000808, Family::Unsigned},
    {"unsigned_long_long", 0x4c000819, Family::Unsigned},
    {"uint8_t", 0x4c00013b, Family::Unsigned},
    {"uint16_t", 0x4c00023c, Family::Unsigned},
    {"uint32_t", 0x4c00043d, Family::Unsigned},
    {"uint64_t", 0x4c00083e, Family::Unsigned},
    {"float", 0x4c00040a, Family::Real},
    {"double", 0x4c00080b, Family::Real},
    {"real", 0x4c00041c, Family::Real},
    {"dblprec", 0x4c00081f, Family::Real},
    {"real4", 0x4c000427, Family::Real},
    {"real8", 0x4c000829, Family::Real},
    {"c_float_complex", 0x4c000840, Family::Complex},
    {"c_double_complex", 0x4c001041, Family::Complex},
    {"cplex", 0x4c00081e, Family::Complex},
    {"dblcplex", 0x4c001022, Family::Complex},
    {"complex8", 0x4c000828, Family::Complex},
    {"complex16", 0x4c00102a, Family::Complex},
    {"cxx_cplex", 0x4c000834, Family::Complex},
    {"cxx_dblcplex", 0x4c001035, Family::Complex},
    {"c_bool", 0x4c00013f, Family::Logical},
    {"cxx_bool", 0x4c000133, Family::Logical},
};

constexpr uint8_t bit(Family family) { return static_cast<uint8_t>(1U << static_cast<unsigned>(family)); }
constexpr uint8_t kIntegers = bit(Family::Signed) | bit(Family::Unsigned);

struct NamedOperator {
  const char* open_mpi;  // behind "ompi_mpi_op_"
  uint32_t mpich;
  ccomBuiltinOp_t op;
  uint8_t families;
};
// Exclusive or of truth values, and what finds places, ccom has not.
constexpr NamedOperator kOperators[] = {
    {"max", 0x58000001, ccomMax, kIntegers | bit(Family::Real)},
    {"min", 0x58000002, ccomMin, kIntegers | bit(Family::Real)},
    {"sum", 0x58000003, ccomSum, kIntegers | bit(Family::Real) | bit(Family::Complex)},
    {"prod", 0x58000004, ccomProd, kIntegers | bit(Family::Real) | bit(Family::Complex)},
    {"land", 0x58000005, ccomLand, kIntegers | bit(Family::Logical)},
    {"lor", 0x58000007, ccomLor, kIntegers | bit(Family::Logical)},
    {"band", 0x58000006, ccomBand, kIntegers | bit(Family::Byte)},
    {"bor", 0x58000008, ccomBor, kIntegers | bit(Family::Byte)},
    {"bxor", 0x5800000a, ccomBxor, kIntegers | bit(Family::Byte)},
};

Handle handle_of(const MpiBelow& below, const std::string& open_mpi, uint32_t mpich) {
  if (!below.is_open_mpi) return mpich;
  return reinterpret_cast<Handle>(below.symbol(("ompi_mpi_" + open_mpi).c_str()));
}

// 0: this MPI has no such type, or its elements have gaps.
size_t size_of(const MpiBelow& below, Handle handle) {
  if (!below.is_open_mpi) return handle >> 8 & 0xff;
  int size = 0;
  Aint low = 0, extent = 0;
  if (below.Type_size(handle, &size) != kSuccess || below.Type_get_extent(handle, &low, &extent) != kSuccess) return 0;
  return size > 0 && size < 256 && low == 0 && extent == size ? static_cast<size_t>(size) : 0;
}

// As a number of ccom's, by what it is and how long.
void find_type(Type& type) {
  const auto by_size = [&](ccomDataType_t one, ccomDataType_t two, ccomDataType_t four, ccomDataType_t eight) {
    type.reduces = type.bytes == 1 || type.bytes == 2 || type.bytes == 4 || type.bytes == 8;
    type.type = type.bytes == 1 ? one : type.bytes == 2 ? two : type.bytes == 4 ? four : eight;
  };
  const auto of_two = [&](uint8_t short_bytes, ccomDataType_t short_type, ccomDataType_t long_type) {
    type.reduces = type.bytes == short_bytes || type.bytes == 2 * short_bytes;
    type.type = type.bytes == short_bytes ? short_type : long_type;
  };
  switch (type.family) {
    case Family::Signed: return by_size(ccomInt8, ccomInt16, ccomInt32, ccomInt64);
    case Family::Unsigned: return by_size(ccomUint8, ccomUint16, ccomUint32, ccomUint64);
    case Family::Real: return of_two(4, ccomFloat32, ccomFloat64);
    case Family::Complex: return of_two(8, ccomComplex64, ccomComplex128);
    case Family::Logical: type.type = ccomBool; break;
    case Family::Byte: type.type = ccomUint8; break;
    case Family::Opaque: return;
  }
  type.reduces = type.bytes == 1;
}

}  // namespace

Handles::Handles(const MpiBelow& below) {
  for (const Named& named : kTypes) {
    Type type{handle_of(below, named.open_mpi, named.mpich), named.family, 0, false, ccomUint8};
    if (type.handle == 0) continue;
    type.bytes = static_cast<uint8_t>(size_of(below, type.handle));
    if (type.bytes == 0) continue;
    find_type(type);
    add(types_, type);
  }
  for (const NamedOperator& named : kOperators) {
    const Handle handle = handle_of(below, std::string("op_") + named.open_mpi, named.mpich);
    if (handle != 0) add(operators_, Operator{handle, named.op, named.families});
  }
  byte = handle_of(below, "byte", 0x4c00010d);
  ints = handle_of(below, "int", 0x4c000405);
  longs = handle_of(below, "long_long_int", 0x4c000809);
  floats = handle_of(below, "float", 0x4c00040a);
  doubles = handle_of(below, "double", 0x4c00080b);
  max = handle_of(below, "op_max", 0x58000001);
  min = handle_of(below, "op_min", 0x58000002);
  sum = handle_of(below, "op_sum", 0x58000003);
}

const Handles& handles() {
  static const Handles* const made = new Handles(mpi());
  return *made;
}

}  // namespace ccom::mpi
