// SPDX-License-Identifier: Apache-2.0
//
// The operators on vectors, once per instruction set.
//
// reduce = finish(combine(... combine(prepare(x0), prepare(x1)) ..., prepare(xk))), from the left. Every combine() is
// commutative bit by bit, NaN payloads aside, and those are gone after store().
#if defined(CCOM_KERNELS_OPERATORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CCOM_KERNELS_OPERATORS_INL_H_
#undef CCOM_KERNELS_OPERATORS_INL_H_
#else
#define CCOM_KERNELS_OPERATORS_INL_H_
#endif

#include "hwy/highway.h"

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ccom {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Operator {
  template <class D, class V>
  static HWY_INLINE V prepare(D, V v) {
    return v;
  }
  template <class D, class V>
  static HWY_INLINE V finish(D, V v, double /*divisor*/) {
    return v;
  }
};

struct Sum : Operator {
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Add(a, b);
  }
};

// A division, not a multiplication by the inverse: correctly rounded, and so the same everywhere.
struct Average : Sum {
  template <class D, class V>
  static HWY_INLINE V finish(D d, V v, double divisor) {
    return hn::Div(v, hn::Set(d, static_cast<hn::TFromD<D>>(divisor)));
  }
};

struct Product : Operator {
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Mul(a, b);
  }
};

// Bytes, two to a 16-bit lane.
struct ProductOfBytes : Operator {
  template <class D, class V>
  static HWY_INLINE V combine(D d, V a, V b) {
    const V low_byte = hn::Set(d, uint16_t{0x00ff});
    const V high = hn::Mul(hn::ShiftRight<8>(a), hn::AndNot(low_byte, b));
    return hn::Or(hn::And(hn::Mul(a, b), low_byte), high);
  }
};

// 64-bit lanes from 32-bit products: few instruction sets have better.
struct ProductOf64 : Operator {
  template <class D, class V>
  static HWY_INLINE V combine(D d, V a, V b) {
#if HWY_TARGET == HWY_SCALAR
    (void)d;
    return V(a.raw * b.raw);
#else
    const hn::Repartition<uint32_t, D> d32;
    const auto a32 = hn::BitCast(d32, a);
    const auto b32 = hn::BitCast(d32, b);
    const V low = hn::MulEven(a32, b32);
    const V cross = hn::BitCast(d, hn::Mul(a32, hn::Reverse2(d32, b32)));
    return hn::Add(low, hn::ShiftLeft<32>(hn::Add(cross, hn::ShiftRight<32>(cross))));
#endif
  }
};

// (a + bi)(c + di) = (ac - bd) + (ad + bc)i, each product and sum rounded.
#if HWY_TARGET == HWY_SCALAR
struct ProductOfComplex : Operator {
  template <class D, class V>
  static HWY_INLINE void combine_parts(D, V* a, const V* b) {
    const V real = hn::Sub(hn::Mul(a[0], b[0]), hn::Mul(a[1], b[1]));
    const V imaginary = hn::Add(hn::Mul(a[0], b[1]), hn::Mul(a[1], b[0]));
    a[0] = real;
    a[1] = imaginary;
  }
};
#else
struct ProductOfComplex : Operator {
  template <class D, class V>
  static HWY_INLINE V combine(D d, V a, V b) {
    const V by_real = hn::Mul(a, hn::DupEven(b));
    const V by_imaginary = hn::Mul(swap_parts(d, a), hn::DupOdd(b));
    return hn::OddEven(hn::Add(by_real, by_imaginary), hn::Sub(by_real, by_imaginary));
  }

 private:
  template <class D, class V>
  static HWY_INLINE V swap_parts(D d, V v) {
    return hn::Reverse2(d, v);
  }
};
#endif

struct Maximum : Operator {
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Max(a, b);
  }
};

struct Minimum : Operator {
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Min(a, b);
  }
};

// The minimum of floating-point numbers where a NaN wins and -0 is below +0: "a < b ? a : b" with the arguments in both
// orders, or-ed. Both give the same unless a and b are equal (then the same bits, or two zeros: or-ing takes the minus)
// or one is a NaN (then both turn up, and or-ing anything into a NaN leaves a NaN).
struct MinimumOfFloats : Operator {
  template <class V>
  static HWY_INLINE V lesser_or_second(V a, V b) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
    return hn::Min(a, b);  // minps: exactly that
#else
    return hn::IfThenElse(hn::Lt(a, b), a, b);
#endif
  }
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Or(lesser_or_second(a, b), lesser_or_second(b, a));
  }
};

// max(a, b) = -min(-a, -b).
struct MaximumOfFloats : MinimumOfFloats {
  template <class D, class V>
  static HWY_INLINE V prepare(D d, V v) {
    return hn::Xor(v, hn::SignBit(d));
  }
  template <class D, class V>
  static HWY_INLINE V finish(D d, V v, double /*divisor*/) {
    return hn::Xor(v, hn::SignBit(d));
  }
};

struct BitAnd : Operator {
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::And(a, b);
  }
};

struct BitOr : Operator {
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Or(a, b);
  }
};

struct BitXor : Operator {
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Xor(a, b);
  }
};

template <class D, class V>
HWY_INLINE V zero_or_one(D d, V v) {
  return hn::IfThenZeroElse(hn::Eq(v, hn::Zero(d)), hn::Set(d, hn::TFromD<D>{1}));
}

struct LogicalOr : BitOr {
  template <class D, class V>
  static HWY_INLINE V finish(D d, V v, double /*divisor*/) {
    return zero_or_one(d, v);
  }
};

struct LogicalAnd : LogicalOr {
  template <class D, class V>
  static HWY_INLINE V combine(D d, V a, V b) {
    return hn::IfThenZeroElse(hn::Eq(b, hn::Zero(d)), a);
  }
};

struct LogicalXor : BitXor {
  template <class D, class V>
  static HWY_INLINE V prepare(D d, V v) {
    return zero_or_one(d, v);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace ccom
HWY_AFTER_NAMESPACE();

#endif
