// SPDX-License-Identifier: Apache-2.0
//
// Basic types shared by the whole library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace ccom {

using Rank = int32_t;

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

// Asked every few milliseconds by a thread that waits: true ends the wait. Thread-safe; may be empty.
using Interrupted = std::function<bool()>;

// Values equal ccomDataType_t (src/api asserts it), but for the last two: what crosses hosts instead of floats, and
// never reaches the C API.
enum class DataType : uint8_t {
  Int8 = 0,
  Uint8 = 1,
  Int32 = 2,
  Uint32 = 3,
  Int64 = 4,
  Uint64 = 5,
  Float16 = 6,
  Float32 = 7,
  Float64 = 8,
  Bfloat16 = 9,
  Float8e4m3 = 10,
  Float8e5m2 = 11,
  Int16 = 32,
  Uint16 = 33,
  Bool = 34,
  Complex64 = 35,
  Complex128 = 36,
  Float8Block = 64,  // kBlockValues numbers in E4M3 and their scale (kernels/scaled_blocks.h)
  Int8Block = 65,
};

// Numbers in an element of the block types.
inline constexpr size_t kBlockValues = 64;
constexpr bool is_block(DataType type) { return type == DataType::Float8Block || type == DataType::Int8Block; }
// Elements of a type that hold so many numbers; the last one of a block type may hold fewer than it could.
constexpr size_t elements_for(DataType type, size_t values) {
  return is_block(type) ? (values + kBlockValues - 1) / kBlockValues : values;
}

// Values equal ccomBuiltinOp_t, but for the last two. PreMulSum is Sum with a pre-multiplied input and never reaches a
// kernel.
enum class ReduceOp : uint8_t {
  Sum = 0,
  Prod = 1,
  Max = 2,
  Min = 3,
  Avg = 4,
  Band = 8,
  Bor = 9,
  Bxor = 10,
  Land = 11,
  Lor = 12,
  User = 16,         // a function of the user's (kernels/user_operator.h)
  UserOrdered = 17,  // the same where operands must stay in rank order
};
constexpr bool is_user(ReduceOp op) { return op == ReduceOp::User || op == ReduceOp::UserOrdered; }

enum class Collective : uint8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  Broadcast,
  Reduce,
  AllToAll,
  Gather,
  Scatter,
  Barrier,
  SendReceive,
};

constexpr size_t size_of(DataType type) {
  switch (type) {
    case DataType::Int8:
    case DataType::Uint8:
    case DataType::Bool:
    case DataType::Float8e4m3:
    case DataType::Float8e5m2: return 1;
    case DataType::Int16:
    case DataType::Uint16:
    case DataType::Float16:
    case DataType::Bfloat16: return 2;
    case DataType::Int32:
    case DataType::Uint32:
    case DataType::Float32: return 4;
    case DataType::Int64:
    case DataType::Uint64:
    case DataType::Float64:
    case DataType::Complex64: return 8;
    case DataType::Complex128: return 16;
    case DataType::Float8Block:
    case DataType::Int8Block: return sizeof(float) + kBlockValues;
  }
  return 0;
}

// Floating types accumulated in float: each further rounding loses accuracy, so algorithms with long chains avoid them.
constexpr bool is_narrow_float(DataType type) {
  return type == DataType::Float16 || type == DataType::Bfloat16 || type == DataType::Float8e4m3 ||
         type == DataType::Float8e5m2;
}

constexpr bool is_floating(DataType type) {
  switch (type) {
    case DataType::Float32:
    case DataType::Float64:
    case DataType::Complex64:
    case DataType::Complex128: return true;
    default: return is_narrow_float(type);
  }
}

// What the blocks of a program's stage consist of: elements of the call's type, or others that stand for them.
enum class UnitType : uint8_t { Call, Float32, Float8Blocks, Int8Blocks };
constexpr bool is_block(UnitType type) { return type == UnitType::Float8Blocks || type == UnitType::Int8Blocks; }
constexpr DataType data_type(UnitType type, DataType call) {
  switch (type) {
    case UnitType::Call: return call;
    case UnitType::Float32: return DataType::Float32;
    case UnitType::Float8Blocks: return DataType::Float8Block;
    case UnitType::Int8Blocks: return DataType::Int8Block;
  }
  return call;
}

// Whether (a op b) op c and a op (b op c) may differ in their bits.
constexpr bool depends_on_grouping(DataType type, ReduceOp op) {
  const bool adds = op == ReduceOp::Sum || op == ReduceOp::Prod || op == ReduceOp::Avg;
  return is_user(op) || (adds && is_floating(type));
}

// "float32", "sum", "allreduce": as in tools and error texts. name_of() never returns an empty view.
std::string_view name_of(DataType type);
std::string_view name_of(ReduceOp op);
std::string_view name_of(UnitType type);  // "call", "float32", "fp8", "int8"
std::string_view name_of(Collective collective);
std::optional<Collective> collective_from(std::string_view name);

}  // namespace ccom
