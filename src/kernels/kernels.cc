// SPDX-License-Identifier: Apache-2.0
//
// Legality, the cases that need no kernel or a pass more, and the call into the kernel of the best instruction set.
#include "kernels/kernels.h"

// SSSE3 and AVX3_DL bring nothing that SSE4 and AVX3 lack here, and cost compile time. Vectors of the others have no
// size that the compiler knows, so they cannot sit in the arrays of lanes-inl.h. TODO(port): SVE, RVV.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#define HWY_TARGET_INCLUDE "kernels/reduce-inl.h"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "kernels/reduce-inl.h"

#include "base/assert.h"
#include "kernels/kernel.h"

#include "hwy/highway.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

namespace ccom {

HWY_EXPORT(find_kernel);
HWY_EXPORT(target_name);

namespace {

// Two of these and an output fit into any first-level cache.
constexpr size_t kTileBytes = 4096;

bool is_integer(DataType type) {
  switch (type) {
    case DataType::Int8:
    case DataType::Uint8:
    case DataType::Int16:
    case DataType::Uint16:
    case DataType::Int32:
    case DataType::Uint32:
    case DataType::Int64:
    case DataType::Uint64: return true;
    default: return false;
  }
}

bool is_complex(DataType type) { return type == DataType::Complex64 || type == DataType::Complex128; }

bool is_logical(const Reduction& reduction) {
  return reduction.type == DataType::Bool || reduction.op == ReduceOp::Land || reduction.op == ReduceOp::Lor;
}

template <class T>
void divide_elements(std::byte* memory, size_t count, uint32_t divisor) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  for (size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, memory + i * sizeof(T), sizeof(T));
    element = static_cast<T>(static_cast<Wide>(element) / static_cast<Wide>(divisor));
    std::memcpy(memory + i * sizeof(T), &element, sizeof(T));
  }
}

void divide_integers(DataType type, std::byte* memory, size_t count, uint32_t divisor) {
  switch (type) {
    case DataType::Int8: return divide_elements<int8_t>(memory, count, divisor);
    case DataType::Uint8: return divide_elements<uint8_t>(memory, count, divisor);
    case DataType::Int16: return divide_elements<int16_t>(memory, count, divisor);
    case DataType::Uint16: return divide_elements<uint16_t>(memory, count, divisor);
    case DataType::Int32: return divide_elements<int32_t>(memory, count, divisor);
    case DataType::Uint32: return divide_elements<uint32_t>(memory, count, divisor);
    case DataType::Int64: return divide_elements<int64_t>(memory, count, divisor);
    case DataType::Uint64: return divide_elements<uint64_t>(memory, count, divisor);
    default: CCOM_ASSERT(!"an integer type");
  }
}

// Sums a tile and divides it while it is still in the first-level cache.
void average_integers(const Reduction& reduction, KernelCall call, Kernel kernel, size_t size_bytes) {
  for (size_t begin = 0; begin < size_bytes; begin += kTileBytes) {
    call.begin_bytes = begin;
    call.end_bytes = std::min(begin + kTileBytes, size_bytes);
    kernel(call);
    const size_t count = (call.end_bytes - begin) / size_of(reduction.type);
    divide_integers(reduction.type, call.output + begin, count, reduction.divide_by);
  }
}

}  // namespace

bool is_legal(DataType type, ReduceOp op) {
  if (size_of(type) == 0) return false;
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Prod: return true;
    case ReduceOp::Avg: return type != DataType::Bool;
    case ReduceOp::Max:
    case ReduceOp::Min: return !is_complex(type);
    case ReduceOp::Band:
    case ReduceOp::Bor:
    case ReduceOp::Bxor:
    case ReduceOp::Land:
    case ReduceOp::Lor: return is_integer(type) || type == DataType::Bool;
  }
  return false;
}

void reduce(const Reduction& reduction, std::span<const std::byte* const> inputs, std::byte* output, size_t count) {
  CCOM_ASSERT(is_legal(reduction.type, reduction.op));
  CCOM_ASSERT(!inputs.empty());
  if (count == 0) return;
  const size_t size_bytes = count * size_of(reduction.type);
  const bool divides = reduction.op == ReduceOp::Avg && reduction.divide_by != 0;
  if (inputs.size() == 1 && !divides && !is_logical(reduction)) {
    if (output != inputs[0]) std::memcpy(output, inputs[0], size_bytes);
    return;
  }
  const ReduceOp op = reduction.op == ReduceOp::Avg && !divides ? ReduceOp::Sum : reduction.op;
  const Kernel kernel = HWY_DYNAMIC_DISPATCH(find_kernel)(reduction.type, op);
  const double divisor = divides ? reduction.divide_by : 1;
  const KernelCall call{
      .inputs = inputs, .output = output, .begin_bytes = 0, .end_bytes = size_bytes, .divisor = divisor};
  if (divides && is_integer(reduction.type)) return average_integers(reduction, call, kernel, size_bytes);
  kernel(call);
}

// The product of the input with a tile full of the scalar.
void multiply(DataType type, const std::byte* scalar, const std::byte* input, std::byte* output, size_t count) {
  CCOM_ASSERT(type != DataType::Bool && size_of(type) != 0);
  const size_t element_bytes = size_of(type);
  const size_t size_bytes = count * element_bytes;
  std::array<std::byte, kTileBytes> repeated;
  for (size_t at = 0; at < std::min(size_bytes, kTileBytes); at += element_bytes) {
    std::memcpy(repeated.data() + at, scalar, element_bytes);
  }
  const Kernel kernel = HWY_DYNAMIC_DISPATCH(find_kernel)(type, ReduceOp::Prod);
  for (size_t begin = 0; begin < size_bytes; begin += kTileBytes) {
    const std::array<const std::byte*, 2> factors = {repeated.data(), input + begin};
    const size_t tile_bytes = std::min(kTileBytes, size_bytes - begin);
    kernel({.inputs = factors, .output = output + begin, .begin_bytes = 0, .end_bytes = tile_bytes, .divisor = 1});
  }
}

const char* kernel_target() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace ccom
