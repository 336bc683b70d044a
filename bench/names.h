// SPDX-License-Identifier: Apache-2.0
//
// Names of collectives, element types and operators in ccom-bench. bench/ uses ccom only through its C API.
#pragma once

#include <ccom/ccom.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace ccom::bench {

enum class Collective {
  AllReduce,
  AllGather,
  ReduceScatter,
  Broadcast,
  Reduce,
  AllToAll,
  Gather,
  Scatter,
  Barrier,
  SendRecv,
  AllGatherV,
  ReduceScatterV,
  AllToAllV,
  GatherV,
  ScatterV
};

// How several inputs become one output. Move: not at all, bytes are transferred unchanged. PreMulSum multiplies each
// rank's input by that rank's scalar first. User: a function of ours adds. UserOrdered: one composes maps (codecs.h).
enum class Reduction { Move, Sum, Prod, Max, Min, Avg, Band, Bor, Bxor, Land, Lor, PreMulSum, User, UserOrdered };

std::span<const Collective> all_collectives();
std::span<const ccomDataType_t> all_types();
std::span<const Reduction> all_reductions();  // Without Move.

std::string_view name_of(Collective collective);
std::string_view name_of(ccomDataType_t type);
std::string_view name_of(Reduction reduction);  // Move: "-".

// Full names, and for types also short and common ones: f32, fp32, float, bf16, half, int, c64, ... Also all_reduce
// for allreduce and the like.
std::optional<Collective> collective_named(std::string_view name);
std::optional<ccomDataType_t> type_named(std::string_view name);
std::optional<Reduction> reduction_named(std::string_view name);

size_t size_of(ccomDataType_t type);
bool reduces(Collective collective);
bool has_root(Collective collective);
// Whether an in-place call exists.
bool has_in_place(Collective collective);
// The plain form of a v-form; others are their own.
Collective plain_of(Collective collective);
inline bool is_v(Collective collective) { return plain_of(collective) != collective; }
// The table at ccomBuiltinOp_t. PreMulSum: every type but bool. User: every type. UserOrdered: integers.
bool is_legal(ccomDataType_t type, Reduction reduction);
// ccomSum and so on; not for Move and operators that are created.
ccomRedOp_t builtin_of(Reduction reduction);

}  // namespace ccom::bench
