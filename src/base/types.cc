// SPDX-License-Identifier: Apache-2.0
#include "base/types.h"

#include "base/collective.h"

namespace ccom {

std::string_view name_of(DataType type) {
  switch (type) {
    case DataType::Int8: return "int8";
    case DataType::Uint8: return "uint8";
    case DataType::Int32: return "int32";
    case DataType::Uint32: return "uint32";
    case DataType::Int64: return "int64";
    case DataType::Uint64: return "uint64";
    case DataType::Float16: return "float16";
    case DataType::Float32: return "float32";
    case DataType::Float64: return "float64";
    case DataType::Bfloat16: return "bfloat16";
    case DataType::Float8e4m3: return "float8e4m3";
    case DataType::Float8e5m2: return "float8e5m2";
    case DataType::Int16: return "int16";
    case DataType::Uint16: return "uint16";
    case DataType::Bool: return "bool";
    case DataType::Complex64: return "complex64";
    case DataType::Complex128: return "complex128";
    case DataType::Float8Block: return "float8 block";
    case DataType::Int8Block: return "int8 block";
  }
  return "unknown";
}

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return "sum";
    case ReduceOp::Prod: return "prod";
    case ReduceOp::Max: return "max";
    case ReduceOp::Min: return "min";
    case ReduceOp::Avg: return "avg";
    case ReduceOp::Band: return "band";
    case ReduceOp::Bor: return "bor";
    case ReduceOp::Bxor: return "bxor";
    case ReduceOp::Land: return "land";
    case ReduceOp::Lor: return "lor";
    case ReduceOp::User: return "user operator";
    case ReduceOp::UserOrdered: return "ordered user operator";
  }
  return "unknown";
}

std::string_view name_of(UnitType type) {
  switch (type) {
    case UnitType::Call: return "call";
    case UnitType::Float32: return "float32";
    case UnitType::Float8Blocks: return "fp8";
    case UnitType::Int8Blocks: return "int8";
  }
  return "unknown";
}

std::string_view name_of(Collective collective) { return traits_of(collective).name; }

std::optional<Collective> collective_from(std::string_view name) {
  const auto* const found = std::ranges::find(kCollectiveTraits, name, &CollectiveTraits::name);
  return found == kCollectiveTraits.end() ? std::nullopt : std::optional(found->collective);
}

}  // namespace ccom
