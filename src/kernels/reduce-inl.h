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
#include "kernels/stochastic_lanes-inl.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ccom {
namespace HWY_NAMESPACE {

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

template <class Lanes>
Kernel stochastic_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return &run<Lanes, Sum>;
    case ReduceOp::Avg: return &run<Lanes, Average>;
    case ReduceOp::Prod: return &run<Lanes, Product>;
    default: return nullptr;
  }
}

// The one that rounds stochastically, or null if that makes no difference.
Kernel find_stochastic_kernel(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::Float16: return stochastic_kernel<StochasticLanes<kFloat16, Float16Lanes>>(op);
    case DataType::Bfloat16: return stochastic_kernel<StochasticBfloat16Lanes>(op);
    case DataType::Float8e4m3: return stochastic_kernel<StochasticLanes<kFloat8e4m3, Float8Lanes<kFloat8e4m3>>>(op);
    case DataType::Float8e5m2: return stochastic_kernel<StochasticLanes<kFloat8e5m2, Float8Lanes<kFloat8e5m2>>>(op);
    default: return nullptr;
  }
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace ccom
HWY_AFTER_NAMESPACE();

#endif
