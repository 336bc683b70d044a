// SPDX-License-Identifier: Apache-2.0
#include "bench/names.h"

#include <algorithm>
#include <array>
#include <string>

namespace ccom::bench {
namespace {

struct TypeRow {
  ccomDataType_t type;
  std::string_view name;
  std::string_view aliases;  // separated by spaces
  size_t size_bytes;
};

constexpr std::array kTypes = {
    TypeRow{ccomInt8, "int8", "i8 char", 1},
    TypeRow{ccomUint8, "uint8", "u8 byte", 1},
    TypeRow{ccomInt16, "int16", "i16 short", 2},
    TypeRow{ccomUint16, "uint16", "u16", 2},
    TypeRow{ccomInt32, "int32", "i32 int", 4},
    TypeRow{ccomUint32, "uint32", "u32", 4},
    TypeRow{ccomInt64, "int64", "i64 long", 8},
    TypeRow{ccomUint64, "uint64", "u64", 8},
    TypeRow{ccomFloat16, "float16", "f16 fp16 half", 2},
    TypeRow{ccomBfloat16, "bfloat16", "bf16", 2},
    TypeRow{ccomFloat32, "float32", "f32 fp32 float", 4},
    TypeRow{ccomFloat64, "float64", "f64 fp64 double", 8},
    TypeRow{ccomFloat8e4m3, "float8e4m3", "f8e4m3 fp8e4m3", 1},
    TypeRow{ccomFloat8e5m2, "float8e5m2", "f8e5m2 fp8e5m2", 1},
    TypeRow{ccomBool, "bool", "b1", 1},
    TypeRow{ccomComplex64, "complex64", "c64", 8},
    TypeRow{ccomComplex128, "complex128", "c128", 16},
};

struct CollectiveRow {
  Collective collective;
  std::string_view name;
  bool reduces;
  bool has_root;
  bool has_in_place;
};

constexpr std::array kCollectives = {
    CollectiveRow{Collective::AllReduce, "allreduce", true, false, true},
    CollectiveRow{Collective::AllGather, "allgather", false, false, true},
    CollectiveRow{Collective::ReduceScatter, "reduce_scatter", true, false, true},
    CollectiveRow{Collective::Broadcast, "broadcast", false, true, true},
    CollectiveRow{Collective::Reduce, "reduce", true, true, true},
    CollectiveRow{Collective::AllToAll, "alltoall", false, false, true},
    CollectiveRow{Collective::Gather, "gather", false, true, true},
    CollectiveRow{Collective::Scatter, "scatter", false, true, true},
    CollectiveRow{Collective::Barrier, "barrier", false, false, false},
    CollectiveRow{Collective::SendRecv, "sendrecv", false, false, false},
    CollectiveRow{Collective::AllGatherV, "allgatherv", false, false, true},
    CollectiveRow{Collective::ReduceScatterV, "reduce_scatterv", true, false, true},
    CollectiveRow{Collective::AllToAllV, "alltoallv", false, false, true},
    CollectiveRow{Collective::GatherV, "gatherv", false, true, true},
    CollectiveRow{Collective::ScatterV, "scatterv", false, true, true},
};

struct ReductionRow {
  Reduction reduction;
  std::string_view name;
  ccomRedOp_t builtin;
};

constexpr std::array kReductions = {
    ReductionRow{Reduction::Sum, "sum", ccomSum},
    ReductionRow{Reduction::Prod, "prod", ccomProd},
    ReductionRow{Reduction::Max, "max", ccomMax},
    ReductionRow{Reduction::Min, "min", ccomMin},
    ReductionRow{Reduction::Avg, "avg", ccomAvg},
    ReductionRow{Reduction::Band, "band", ccomBand},
    ReductionRow{Reduction::Bor, "bor", ccomBor},
    ReductionRow{Reduction::Bxor, "bxor", ccomBxor},
    ReductionRow{Reduction::Land, "land", ccomLand},
    ReductionRow{Reduction::Lor, "lor", ccomLor},
    ReductionRow{Reduction::PreMulSum, "premulsum", ccomNumOps},
    ReductionRow{Reduction::User, "user", ccomNumOps},
    ReductionRow{Reduction::UserOrdered, "user-ordered", ccomNumOps},
};

template <size_t n, class Row, class Value>
constexpr std::array<Value, n> column(const std::array<Row, n>& rows, Value Row::*member) {
  std::array<Value, n> values{};
  for (size_t i = 0; i < n; ++i) values[i] = rows[i].*member;
  return values;
}
constexpr auto kAllTypes = column(kTypes, &TypeRow::type);
constexpr auto kAllCollectives = column(kCollectives, &CollectiveRow::collective);
constexpr auto kAllReductions = column(kReductions, &ReductionRow::reduction);

const TypeRow& row_of(ccomDataType_t type) { return *std::ranges::find(kTypes, type, &TypeRow::type); }
const CollectiveRow& row_of(Collective collective) { return kCollectives[static_cast<size_t>(collective)]; }

bool is_complex(ccomDataType_t type) { return type == ccomComplex64 || type == ccomComplex128; }
bool is_float(ccomDataType_t type) {
  return type == ccomFloat16 || type == ccomBfloat16 || type == ccomFloat32 || type == ccomFloat64 ||
         type == ccomFloat8e4m3 || type == ccomFloat8e5m2;
}

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const size_t space = std::min(words.find(' '), words.size());
    if (words.substr(0, space) == word) return true;
    words.remove_prefix(std::min(space + 1, words.size()));
  }
  return false;
}

std::string without_underscores(std::string_view text) {
  std::string result(text);
  std::erase(result, '_');
  return result;
}

}  // namespace

std::span<const Collective> all_collectives() { return kAllCollectives; }
std::span<const ccomDataType_t> all_types() { return kAllTypes; }
std::span<const Reduction> all_reductions() { return kAllReductions; }

std::string_view name_of(Collective collective) { return row_of(collective).name; }
std::string_view name_of(ccomDataType_t type) { return row_of(type).name; }
std::string_view name_of(Reduction reduction) {
  if (reduction == Reduction::Move) return "-";
  return std::ranges::find(kReductions, reduction, &ReductionRow::reduction)->name;
}

std::optional<Collective> collective_named(std::string_view name) {
  for (const CollectiveRow& row : kCollectives) {
    if (without_underscores(row.name) == without_underscores(name)) return row.collective;
  }
  return std::nullopt;
}

std::optional<ccomDataType_t> type_named(std::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (row.name == name || has_word(row.aliases, name)) return row.type;
  }
  return std::nullopt;
}

std::optional<Reduction> reduction_named(std::string_view name) {
  for (const ReductionRow& row : kReductions) {
    if (row.name == name) return row.reduction;
  }
  return std::nullopt;
}

size_t size_of(ccomDataType_t type) { return row_of(type).size_bytes; }
bool reduces(Collective collective) { return row_of(collective).reduces; }
bool has_root(Collective collective) { return row_of(collective).has_root; }
bool has_in_place(Collective collective) { return row_of(collective).has_in_place; }

Collective plain_of(Collective collective) {
  switch (collective) {
    case Collective::AllGatherV: return Collective::AllGather;
    case Collective::ReduceScatterV: return Collective::ReduceScatter;
    case Collective::AllToAllV: return Collective::AllToAll;
    case Collective::GatherV: return Collective::Gather;
    case Collective::ScatterV: return Collective::Scatter;
    default: return collective;
  }
}

bool is_legal(ccomDataType_t type, Reduction reduction) {
  switch (reduction) {
    case Reduction::Move:
    case Reduction::Sum:
    case Reduction::Prod:
    case Reduction::User: return true;
    case Reduction::Avg:
    case Reduction::PreMulSum: return type != ccomBool;
    case Reduction::UserOrdered: return type != ccomBool && !is_complex(type) && !is_float(type);
    case Reduction::Max:
    case Reduction::Min: return !is_complex(type);
    case Reduction::Band:
    case Reduction::Bor:
    case Reduction::Bxor:
    case Reduction::Land:
    case Reduction::Lor: return !is_complex(type) && !is_float(type);
  }
  return false;
}

ccomRedOp_t builtin_of(Reduction reduction) {
  return std::ranges::find(kReductions, reduction, &ReductionRow::reduction)->builtin;
}

}  // namespace ccom::bench
