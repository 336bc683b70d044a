// SPDX-License-Identifier: Apache-2.0
//
// The one loop of all reductions, and the choice of its lanes and operator, once per instruction set.
//
// A block of a few vectors is loaded from every input in turn, combined in registers and stored once: each byte of
// input is read once and each byte of output written once, for any number of inputs. A block is read completely before
// it is written, so the output may be one of the inputs.
#if defined(CCOM_KERNELS_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CCOM_KERNELS_REDUCE_INL_H_
#undef CCOM_KERNELS_REDUCE_INL_H_
#else
#define CCOM_KERNELS_REDUCE_INL_H_
#endif

#include "base/types.h"
#include "kernels/kernel.h"
#include "kernels/lanes-inl.h"
#include "kernels/narrow_lanes-inl.h"
#include "kernels/operators-inl.h"

#include "hwy/highway.h"

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace ccom {
namespace HWY_NAMESPACE {

// kUnroll * kBytes bytes, in registers.
template <class Lanes, class Op>
class Block {
 public:
  static constexpr size_t kBytes = Lanes::kUnroll * Lanes::kBytes;

  HWY_INLINE void load(const std::byte* memory) { load(memory, values_); }
  HWY_INLINE void combine(const std::byte* memory) {
    V more[Lanes::kUnroll][Lanes::kParts];
    load(memory, more);
    for (size_t u = 0; u < Lanes::kUnroll; ++u) combine_parts(values_[u], more[u]);
  }
  HWY_INLINE void store(double divisor, std::byte* memory) {
    for (size_t u = 0; u < Lanes::kUnroll; ++u) {
      for (V& value : values_[u]) value = Op::finish(D(), value, divisor);
      Lanes::store(values_[u], memory + u * Lanes::kBytes);
    }
  }

 private:
  using D = typename Lanes::D;
  using V = typename Lanes::V;

  static HWY_INLINE void load(const std::byte* memory, V (&values)[Lanes::kUnroll][Lanes::kParts]) {
    for (size_t u = 0; u < Lanes::kUnroll; ++u) {
      Lanes::load(memory + u * Lanes::kBytes, values[u]);
      for (V& value : values[u]) value = Op::prepare(D(), value);
    }
  }
  static HWY_INLINE void combine_parts(V* a, const V* b) {
    if constexpr (requires { Op::combine_parts(D(), a, b); }) {
      Op::combine_parts(D(), a, b);
    } else {
      for (size_t p = 0; p < Lanes::kParts; ++p) a[p] = Op::combine(D(), a[p], b[p]);
    }
  }

  V values_[Lanes::kUnroll][Lanes::kParts];
};

template <class Lanes, class Op>
void run(const KernelCall& call) {
  using RegisterBlock = Block<Lanes, Op>;
  RegisterBlock block;
  const std::byte* const* const inputs = call.inputs.data();
  const size_t input_count = call.inputs.size();
  size_t at = call.begin_bytes;
  for (; call.end_bytes - at >= RegisterBlock::kBytes; at += RegisterBlock::kBytes) {
    block.load(inputs[0] + at);
    for (size_t k = 1; k < input_count; ++k) block.combine(inputs[k] + at);
    block.store(call.divisor, call.output + at);
  }
  size_t rest = call.end_bytes - at;
  if (rest == 0) return;
  asm("" : "+r"(rest));  // knowing its bound, GCC would copy with rep movs, which is slow to start
  HWY_ALIGN std::byte padded[RegisterBlock::kBytes] = {};
  std::memcpy(padded, inputs[0] + at, rest);
  block.load(padded);
  for (size_t k = 1; k < input_count; ++k) {
    std::memcpy(padded, inputs[k] + at, rest);
    block.combine(padded);
  }
  block.store(call.divisor, padded);
  std::memcpy(call.output + at, padded, rest);
}

template <class Lanes>
Kernel float_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return &run<Lanes, Sum>;
    case ReduceOp::Avg: return &run<Lanes, Average>;
    case ReduceOp::Prod: return &run<Lanes, Product>;
    case ReduceOp::Max: return &run<Lanes, MaximumOfFloats>;
    case ReduceOp::Min: return &run<Lanes, MinimumOfFloats>;
    default: return nullptr;
  }
}

// Sums and averages of complex numbers are those of their parts.
template <class T>
Kernel complex_kernel(ReduceOp op) {
  if (op == ReduceOp::Prod) return &run<ComplexLanes<T>, ProductOfComplex>;
  return float_kernel<FloatLanes<T>>(op);
}

template <class Unsigned>
Kernel product_kernel() {
  if constexpr (sizeof(Unsigned) == 1) {
    return &run<IntegerLanes<uint16_t>, ProductOfBytes>;
  } else if constexpr (sizeof(Unsigned) == 8) {
    return &run<IntegerLanes<Unsigned>, ProductOf64>;
  } else {
    return &run<IntegerLanes<Unsigned>, Product>;
  }
}

// Only max and min tell signed from unsigned; bits know no width. An average is a sum here, divided by the caller.
template <class T, class Unsigned>
Kernel integer_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Avg: return &run<IntegerLanes<Unsigned>, Sum>;
    case ReduceOp::Prod: return product_kernel<Unsigned>();
    case ReduceOp::Max: return &run<IntegerLanes<T>, Maximum>;
    case ReduceOp::Min: return &run<IntegerLanes<T>, Minimum>;
    case ReduceOp::Band: return &run<IntegerLanes<uint8_t>, BitAnd>;
    case ReduceOp::Bor: return &run<IntegerLanes<uint8_t>, BitOr>;
    case ReduceOp::Bxor: return &run<IntegerLanes<uint8_t>, BitXor>;
    case ReduceOp::Land: return &run<IntegerLanes<Unsigned>, LogicalAnd>;
    case ReduceOp::Lor: return &run<IntegerLanes<Unsigned>, LogicalOr>;
  }
  return nullptr;
}

Kernel bool_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Max:
    case ReduceOp::Bor:
    case ReduceOp::Lor: return &run<IntegerLanes<uint8_t>, LogicalOr>;
    case ReduceOp::Prod:
    case ReduceOp::Min:
    case ReduceOp::Band:
    case ReduceOp::Land: return &run<IntegerLanes<uint8_t>, LogicalAnd>;
    case ReduceOp::Bxor: return &run<IntegerLanes<uint8_t>, LogicalXor>;
    case ReduceOp::Avg: return nullptr;
  }
  return nullptr;
}

// For legal pairs only.
Kernel find_kernel(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::Int8: return integer_kernel<int8_t, uint8_t>(op);
    case DataType::Uint8: return integer_kernel<uint8_t, uint8_t>(op);
    case DataType::Int16: return integer_kernel<int16_t, uint16_t>(op);
    case DataType::Uint16: return integer_kernel<uint16_t, uint16_t>(op);
    case DataType::Int32: return integer_kernel<int32_t, uint32_t>(op);
    case DataType::Uint32: return integer_kernel<uint32_t, uint32_t>(op);
    case DataType::Int64: return integer_kernel<int64_t, uint64_t>(op);
    case DataType::Uint64: return integer_kernel<uint64_t, uint64_t>(op);
    case DataType::Bool: return bool_kernel(op);
    case DataType::Float16: return float_kernel<Float16Lanes>(op);
    case DataType::Bfloat16: return float_kernel<Bfloat16Lanes>(op);
    case DataType::Float8e4m3: return float_kernel<Float8Lanes<kFloat8e4m3>>(op);
    case DataType::Float8e5m2: return float_kernel<Float8Lanes<kFloat8e5m2>>(op);
    case DataType::Float32: return float_kernel<FloatLanes<float>>(op);
    case DataType::Float64: return float_kernel<FloatLanes<double>>(op);
    case DataType::Complex64: return complex_kernel<float>(op);
    case DataType::Complex128: return complex_kernel<double>(op);
  }
  return nullptr;
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace ccom
HWY_AFTER_NAMESPACE();

#endif
