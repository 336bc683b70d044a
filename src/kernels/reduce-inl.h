// SPDX-License-Identifier: Apache-2.0
//
// The choice of the lanes and the operator of a reduction, once per instruction set.
#if defined(CCOM_KERNELS_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CCOM_KERNELS_REDUCE_INL_H_
#undef CCOM_KERNELS_REDUCE_INL_H_
#else
#define CCOM_KERNELS_REDUCE_INL_H_
#endif

#include "base/types.h"
#include "kernels/block-inl.h"
#include "kernels/kernel.h"
#include "kernels/lanes-inl.h"
#include "kernels/narrow_lanes-inl.h"
#include "kernels/operators-inl.h"
#include "kernels/scaled_blocks-inl.h"
#include "kernels/stochastic_lanes-inl.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ccom {
namespace HWY_NAMESPACE {

template <class Lanes, class Op>
Kernels kernels() {
  if constexpr (kIsStochastic<Lanes>) {
    return {&run<Lanes, Op>, nullptr};
  } else {
    return {&run<Lanes, Op>, &run_small<Lanes, Op>};
  }
}

template <class Lanes>
Kernels float_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return kernels<Lanes, Sum>();
    case ReduceOp::Avg: return kernels<Lanes, Average>();
    case ReduceOp::Prod: return kernels<Lanes, Product>();
    case ReduceOp::Max: return kernels<Lanes, MaximumOfFloats>();
    case ReduceOp::Min: return kernels<Lanes, MinimumOfFloats>();
    default: return {};
  }
}

// Sums and averages of complex numbers are those of their parts.
template <class T>
Kernels complex_kernel(ReduceOp op) {
  if (op == ReduceOp::Prod) return kernels<ComplexLanes<T>, ProductOfComplex>();
  return float_kernel<FloatLanes<T>>(op);
}

template <class Unsigned>
Kernels product_kernel() {
  if constexpr (sizeof(Unsigned) == 1) {
    return kernels<IntegerLanes<uint16_t>, ProductOfBytes>();
  } else if constexpr (sizeof(Unsigned) == 8) {
    return kernels<IntegerLanes<Unsigned>, ProductOf64>();
  } else {
    return kernels<IntegerLanes<Unsigned>, Product>();
  }
}

// Only max and min tell signed from unsigned; bits know no width. An average is a sum here, divided by the caller.
template <class T, class Unsigned>
Kernels integer_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Avg: return kernels<IntegerLanes<Unsigned>, Sum>();
    case ReduceOp::Prod: return product_kernel<Unsigned>();
    case ReduceOp::Max: return kernels<IntegerLanes<T>, Maximum>();
    case ReduceOp::Min: return kernels<IntegerLanes<T>, Minimum>();
    case ReduceOp::Band: return kernels<IntegerLanes<uint8_t>, BitAnd>();
    case ReduceOp::Bor: return kernels<IntegerLanes<uint8_t>, BitOr>();
    case ReduceOp::Bxor: return kernels<IntegerLanes<uint8_t>, BitXor>();
    case ReduceOp::Land: return kernels<IntegerLanes<Unsigned>, LogicalAnd>();
    case ReduceOp::Lor: return kernels<IntegerLanes<Unsigned>, LogicalOr>();
    case ReduceOp::User:
    case ReduceOp::UserOrdered: return {};
  }
  return {};
}

Kernels bool_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Max:
    case ReduceOp::Bor:
    case ReduceOp::Lor: return kernels<IntegerLanes<uint8_t>, LogicalOr>();
    case ReduceOp::Prod:
    case ReduceOp::Min:
    case ReduceOp::Band:
    case ReduceOp::Land: return kernels<IntegerLanes<uint8_t>, LogicalAnd>();
    case ReduceOp::Bxor: return kernels<IntegerLanes<uint8_t>, LogicalXor>();
    case ReduceOp::Avg:
    case ReduceOp::User:
    case ReduceOp::UserOrdered: return {};
  }
  return {};
}

// For legal pairs only.
Kernels find_kernel(DataType type, ReduceOp op) {
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
    case DataType::Float8Block:
    case DataType::Int8Block: return find_block_kernel(type, op);
  }
  return {};
}

template <class Lanes>
Kernels stochastic_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return kernels<Lanes, Sum>();
    case ReduceOp::Avg: return kernels<Lanes, Average>();
    case ReduceOp::Prod: return kernels<Lanes, Product>();
    default: return {};
  }
}

// The one that rounds stochastically, or null if that makes no difference.
Kernels find_stochastic_kernel(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::Float16: return stochastic_kernel<StochasticLanes<kFloat16, Float16Lanes>>(op);
    case DataType::Bfloat16: return stochastic_kernel<StochasticBfloat16Lanes>(op);
    case DataType::Float8e4m3: return stochastic_kernel<StochasticLanes<kFloat8e4m3, Float8Lanes<kFloat8e4m3>>>(op);
    case DataType::Float8e5m2: return stochastic_kernel<StochasticLanes<kFloat8e5m2, Float8Lanes<kFloat8e5m2>>>(op);
    default: return {};
  }
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace ccom
HWY_AFTER_NAMESPACE();

#endif
