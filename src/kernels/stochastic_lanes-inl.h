// SPDX-License-Identifier: Apache-2.0
//
// The lanes types (see lanes-inl.h) that round stochastically: those of narrow_lanes-inl.h with another pack(), which
// takes the random stream and the index of the vector's first element. formats.h and random.h define the bits.
#if defined(CCOM_KERNELS_STOCHASTIC_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CCOM_KERNELS_STOCHASTIC_LANES_INL_H_
#undef CCOM_KERNELS_STOCHASTIC_LANES_INL_H_
#else
#define CCOM_KERNELS_STOCHASTIC_LANES_INL_H_
#endif

#include "kernels/formats.h"
#include "kernels/narrow_lanes-inl.h"
#include "kernels/random.h"

#include "hwy/highway.h"

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ccom {
namespace HWY_NAMESPACE {

// random_bits(), lane by lane.
template <class Bits = hn::Vec<hn::ScalableTag<uint32_t>>>
HWY_INLINE Bits random_lanes(RandomKey key, Bits index) {
  const hn::ScalableTag<uint32_t> du;
  Bits x = hn::Xor(index, hn::Set(du, key.first));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(du, 0x7feb352du));
  x = hn::Mul(hn::Xor(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(du, key.second)), hn::Set(du, 0x846ca68bu));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

// narrow_stochastic(), lane by lane.
template <const NarrowFormat& kFormat>
HWY_INLINE hn::Vec<hn::ScalableTag<uint32_t>> narrow_stochastic_lanes(hn::Vec<hn::ScalableTag<float>> value,
                                                                      hn::Vec<hn::ScalableTag<uint32_t>> random) {
  const hn::ScalableTag<uint32_t> du;
  const hn::ScalableTag<int32_t> di;
  const auto constant = [du](uint32_t number) HWY_ATTR { return hn::Set(du, number); };
  const auto above = [di](auto v, uint32_t number) HWY_ATTR {
    return hn::RebindMask(hn::ScalableTag<uint32_t>(),
                          hn::Gt(hn::BitCast(di, v), hn::Set(di, static_cast<int32_t>(number))));
  };
  const auto bits = hn::BitCast(du, value);
  const auto magnitude = hn::And(bits, constant(0x7fffffff));
  const auto sign = hn::ShiftLeft<kFormat.bits() - 1>(hn::ShiftRight<31>(bits));

  // Numbers of bfloat16 are like normal ones to it: they have float's exponents, and its subnormals.
  constexpr uint32_t kNotNormal = kFormat.bias == 127 ? ~0u : kFormat.min_normal_as_float() - 1;
  const auto is_normal = above(magnitude, kNotNormal);
  const auto mantissa = hn::Or(hn::And(magnitude, constant(0x7fffff)), constant(0x800000));
  const auto offset = hn::Sub(magnitude, constant(kFormat.exponent_offset()));
  constexpr uint32_t kShift = kFormat.mantissa_shift();
  constexpr uint32_t kMostDropped = kShift + (kFormat.min_normal_as_float() >> 23);
  const auto dropped_below = hn::Sub(constant(kMostDropped), hn::ShiftRight<23>(magnitude));
  const auto vanishes = hn::AndNot(is_normal, above(dropped_below, 31));
  const auto significand = hn::IfThenElse(is_normal, offset, mantissa);
  const auto dropped = hn::IfThenElse(is_normal, constant(kShift), hn::Min(dropped_below, constant(31)));

  const auto truncated = significand >> dropped;
  const auto rounded = hn::Add(significand, random >> hn::Sub(constant(32), dropped)) >> dropped;
  const auto finite = hn::Min(rounded, constant(kFormat.max_finite));
  const auto number = hn::IfThenElse(above(truncated, kFormat.max_finite), constant(kFormat.overflow), finite);
  const auto code = hn::Or(hn::IfThenZeroElse(vanishes, number), sign);
  return hn::IfThenElse(above(magnitude, 0x7f800000), constant(kFormat.nan), code);
}

template <const NarrowFormat& kFormat, class Lanes>
struct StochasticLanes : Lanes {
  using typename Lanes::Bits;
  using typename Lanes::V;

  static HWY_INLINE Bits pack(const V* parts, RandomKey key, uint32_t first) {
    Bits codes[Lanes::kParts];
    for (size_t p = 0; p < Lanes::kParts; ++p) {
      const Bits random = random_lanes(key, hn::Add(Lanes::index(p), Lanes::bits(first)));
      codes[p] = narrow_stochastic_lanes<kFormat>(parts[p], random);
    }
    return Lanes::join(codes);
  }
};

struct StochasticBfloat16Lanes : Bfloat16Lanes {
  // `random` holds 16 bits for each element, where the element is.
  static HWY_INLINE Bits pack(const V* parts, RandomKey key, uint32_t first) {
    // Iota of a variable is slow: it goes through memory.
    const Bits pair = hn::Add(hn::Iota(DBits(), 0), bits(first / 2));
    Bits random = random_lanes(key, pair);
    if (first % 2 != 0) {
      const Bits next = random_lanes(key, hn::Add(pair, bits(1)));
      random = hn::Or(hn::ShiftRight<16>(random), hn::ShiftLeft<16>(next));
    }
    return round(upper_halves(parts), lower_halves(parts), random);
  }

 private:
#if HWY_TARGET == HWY_SCALAR
  static HWY_INLINE Bits round(Bits upper, Bits lower, Bits random) {
    const auto one = [=](int shift) HWY_ATTR {
      const uint32_t value = (upper.raw >> shift) << 16 | ((lower.raw >> shift) & 0xffff);
      return narrow_stochastic(kBfloat16, std::bit_cast<float>(value), ~(random.raw >> shift << 16));
    };
    return bits(one(0) | one(16) << 16);
  }
#else
  // ~random + lower carries out of 16 bits if lower > random. Nothing carries out of the largest finite number; the
  // lower half of infinity is 0.
  static HWY_INLINE Bits round(Bits upper, Bits lower, Bits random) {
    const hn::Repartition<uint16_t, DBits> d16;
    const hn::RebindToSigned<decltype(d16)> di16;
    const auto high = hn::BitCast(d16, upper);
    const auto magnitude = hn::BitCast(di16, hn::And(high, hn::Set(d16, uint16_t{0x7fff})));
    const auto may_carry = hn::RebindMask(d16, hn::Lt(magnitude, hn::Set(di16, int16_t{0x7f7f})));
    const auto carries = hn::And(may_carry, hn::Gt(hn::BitCast(d16, lower), hn::BitCast(d16, random)));
    const auto rounded = hn::Sub(high, hn::VecFromMask(d16, carries));
    const auto is_nan = hn::RebindMask(d16, hn::Gt(magnitude, hn::Set(di16, int16_t{0x7f80})));
    const auto one_nan = hn::Set(d16, static_cast<uint16_t>(kBfloat16.nan));
    return hn::BitCast(DBits(), hn::IfThenElse(is_nan, one_nan, rounded));
  }
#endif
};

}  // namespace HWY_NAMESPACE
}  // namespace ccom
HWY_AFTER_NAMESPACE();

#endif
