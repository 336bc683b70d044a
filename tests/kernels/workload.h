// SPDX-License-Identifier: Apache-2.0
//
// What the kernel tests share: the lists of types, operators and instruction sets, and inputs full of awkward values.
#pragma once

#include "base/types.h"
#include "kernels/formats.h"
#include "kernels/kernels.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

namespace ccom {

inline constexpr std::array kAllTypes = {
    DataType::Int8,       DataType::Uint8,      DataType::Int32,   DataType::Uint32,  DataType::Int64,
    DataType::Uint64,     DataType::Float16,    DataType::Float32, DataType::Float64, DataType::Bfloat16,
    DataType::Float8e4m3, DataType::Float8e5m2, DataType::Int16,   DataType::Uint16,  DataType::Bool,
    DataType::Complex64,  DataType::Complex128};
inline constexpr std::array kAllOps = {ReduceOp::Sum,  ReduceOp::Prod, ReduceOp::Max,  ReduceOp::Min,  ReduceOp::Avg,
                                       ReduceOp::Band, ReduceOp::Bor,  ReduceOp::Bxor, ReduceOp::Land, ReduceOp::Lor};
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr std::array kNarrowFloats = {DataType::Float16, DataType::Bfloat16, DataType::Float8e4m3,
                                             DataType::Float8e5m2};

std::string describe(const Reduction& reduction);

// Runs `body` once with every instruction set that is compiled in and that this processor has, then puts the best back.
// Returns their names.
std::vector<std::string> for_each_target(const std::function<void()>& body);

// `count` elements of the type: random bits, and one in four an awkward value (zeros of both signs, ones, the largest
// and the smallest numbers, infinities, NaNs, subnormals). Bytes of Bool other than 0 and 1 occur.
std::vector<std::byte> awkward_elements(DataType type, size_t count, uint64_t seed);

// One vector per input.
using Buffers = std::vector<std::vector<std::byte>>;
Buffers awkward_buffers(DataType type, size_t inputs, size_t count, uint64_t seed);

// The addresses of vectors, or of vectors from some byte on.
std::vector<const std::byte*> addresses(const Buffers& buffers, size_t offset = 0);

// The first `count` elements by the kernels, into fresh memory.
std::vector<std::byte> reduced(const Reduction& reduction, const Buffers& inputs, size_t count);

// Of one of the four narrow floating types.
const NarrowFormat& format_of(DataType type);

}  // namespace ccom
