// SPDX-License-Identifier: Apache-2.0
//
// The lanes types (see lanes-inl.h) of the 16- and 8-bit floating formats: float lanes, converted on the way.
#if defined(CCOM_KERNELS_NARROW_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CCOM_KERNELS_NARROW_LANES_INL_H_
#undef CCOM_KERNELS_NARROW_LANES_INL_H_
#else
#define CCOM_KERNELS_NARROW_LANES_INL_H_
#endif

#include "kernels/formats.h"
#include "kernels/lanes-inl.h"

#include "hwy/highway.h"

#include <bit>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ccom {
namespace HWY_NAMESPACE {

// What the narrow formats share: memory is read as 32-bit words that hold 2 or 4 elements each; element `i` of every
// word goes to parts[i]. No shuffles, only shifts and masks. The lanes that index() and join() know: the elements of a
// part by their index in memory, and the codes of all parts in 32-bit lanes to be put together.
struct NarrowLanes : RawLanes<uint32_t> {
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using DBits = DRaw;
  using Bits = Raw;

  static HWY_INLINE Bits bits(uint32_t value) { return hn::Set(DBits(), value); }
  // The index of each lane's element where a word holds 2^kLog2 elements.
  template <int kLog2>
  static HWY_INLINE Bits index_in_words(size_t part) {
    return hn::Add(hn::ShiftLeft<kLog2>(hn::Iota(DBits(), 0)), bits(static_cast<uint32_t>(part)));
  }
};

struct Bfloat16Lanes : NarrowLanes {
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kParts = 2;
  static constexpr size_t kUnroll = 2;

  static HWY_INLINE void unpack(Bits words, V* parts) {
    parts[0] = hn::BitCast(D(), hn::ShiftLeft<16>(words));
    parts[1] = hn::BitCast(D(), hn::And(words, bits(0xffff0000)));
  }
  // Upper and lower halves of the floats, each gathered into words, so that the rounding has one 16-bit lane per
  // element.
  static HWY_INLINE Bits pack(const V* parts) { return round(upper_halves(parts), lower_halves(parts)); }

 protected:
  static HWY_INLINE Bits upper_halves(const V* parts) {
    const Bits high = hn::And(hn::BitCast(DBits(), parts[1]), bits(0xffff0000));
    return hn::Or(hn::ShiftRight<16>(hn::BitCast(DBits(), parts[0])), high);
  }
  static HWY_INLINE Bits lower_halves(const V* parts) {
    const Bits low = hn::And(hn::BitCast(DBits(), parts[0]), bits(0xffff));
    return hn::Or(low, hn::ShiftLeft<16>(hn::BitCast(DBits(), parts[1])));
  }

 private:
#if HWY_TARGET == HWY_SCALAR
  static HWY_INLINE Bits round(Bits upper, Bits lower) {
    const auto one = [lower, upper](int shift) HWY_ATTR {
      return narrow(kBfloat16, std::bit_cast<float>((upper.raw >> shift) << 16 | ((lower.raw >> shift) & 0xffff)));
    };
    return bits(one(0) | one(16) << 16);
  }
#else
  // The carry of lower + 0x7fff + (upper & 1) out of 16 bits, from a rounding average, which keeps the 17th bit. The
  // lower half of a NaN is 0, since all inputs' are and processors make and pass on only such: it never carries, and
  // shows in its upper half.
  static HWY_INLINE Bits round(Bits upper, Bits lower) {
    const hn::Repartition<uint16_t, DBits> d16;
    const hn::RebindToSigned<decltype(d16)> di16;
    const auto high = hn::BitCast(d16, upper);
    const auto odd = hn::Or(hn::And(high, hn::Set(d16, uint16_t{1})), hn::Set(d16, uint16_t{0x7ffe}));
    const auto carry = hn::ShiftRight<15>(hn::AverageRound(hn::BitCast(d16, lower), odd));
    const auto magnitude = hn::BitCast(di16, hn::And(high, hn::Set(d16, uint16_t{0x7fff})));
    const auto is_nan = hn::RebindMask(d16, hn::Gt(magnitude, hn::Set(di16, int16_t{0x7f80})));
    const auto one_nan = hn::Set(d16, static_cast<uint16_t>(kBfloat16.nan));
    return hn::BitCast(DBits(), hn::IfThenElse(is_nan, one_nan, hn::Add(high, carry)));
  }
#endif
};

// widen() and narrow() of formats.h, lane by lane. `code` may carry other bits above the format's own.
template <const NarrowFormat& kFormat>
HWY_INLINE hn::Vec<hn::ScalableTag<float>> widen_lanes(hn::Vec<hn::ScalableTag<uint32_t>> code) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<uint32_t> du;
  const hn::ScalableTag<int32_t> di;
  const auto magnitude = hn::And(code, hn::Set(du, kFormat.magnitude_mask()));
  const auto sign = hn::And(hn::ShiftLeft<32 - kFormat.bits()>(code), hn::Set(du, 0x80000000u));
  const auto shifted = hn::ShiftLeft<kFormat.mantissa_shift()>(magnitude);
  const auto normal = hn::Add(shifted, hn::Set(du, kFormat.exponent_offset()));
  const auto implicit_one = hn::Set(du, kFormat.min_normal_as_float());
  const auto subnormal = hn::Sub(hn::BitCast(d, hn::Add(shifted, implicit_one)), hn::BitCast(d, implicit_one));
  const auto is_subnormal =
      hn::Lt(hn::BitCast(di, magnitude), hn::Set(di, static_cast<int32_t>(1 << kFormat.mantissa_bits)));
  const auto is_special = hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, static_cast<int32_t>(kFormat.max_finite)));
  const auto special = hn::IfThenElseZero(hn::RebindMask(du, is_special), hn::Set(du, 0x7f800000u));
  const auto finite = hn::IfThenElse(hn::RebindMask(d, is_subnormal), subnormal, hn::BitCast(d, normal));
  return hn::Or(finite, hn::BitCast(d, hn::Or(special, sign)));
}

template <const NarrowFormat& kFormat>
HWY_INLINE hn::Vec<hn::ScalableTag<uint32_t>> narrow_lanes(hn::Vec<hn::ScalableTag<float>> value) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<uint32_t> du;
  const hn::ScalableTag<int32_t> di;
  constexpr int kShift = kFormat.mantissa_shift();
  constexpr uint32_t kRounding = (1u << (kShift - 1)) - 1 - kFormat.exponent_offset();
  const auto bits = hn::BitCast(du, value);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
  const auto sign = hn::ShiftLeft<kFormat.bits() - 1>(hn::ShiftRight<31>(bits));

  const auto rounder = hn::Set(du, kFormat.subnormal_rounder());
  const auto on_rounder = hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, rounder));
  const auto subnormal = hn::Sub(hn::BitCast(du, on_rounder), rounder);

  const auto odd = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(du, 1u));
  const auto rounded = hn::ShiftRight<kShift>(hn::Add(hn::Add(magnitude, hn::Set(du, kRounding)), odd));
  const auto normal = hn::Min(hn::BitCast(di, rounded), hn::Set(di, static_cast<int32_t>(kFormat.overflow)));

  const auto is_subnormal =
      hn::Lt(hn::BitCast(di, magnitude), hn::Set(di, static_cast<int32_t>(kFormat.min_normal_as_float())));
  const auto finite = hn::IfThenElse(hn::RebindMask(du, is_subnormal), subnormal, hn::BitCast(du, normal));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(value));
  return hn::IfThenElse(is_nan, hn::Set(du, kFormat.nan), hn::Or(finite, sign));
}

// F16C converts exactly as formats.h does, whatever the flush modes; elsewhere the integer way.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
struct Float16Lanes : NarrowLanes {
  using DHalf = hn::Rebind<hwy::float16_t, D>;
  using D16 = hn::Repartition<uint16_t, D>;
  using DWords = hn::Rebind<uint16_t, D>;
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kParts = 2;
  static constexpr size_t kUnroll = 2;

  // Converting from memory spares the shuffles that converting from a register takes.
  static HWY_INLINE void load_parts(const std::byte* memory, V* parts) {
    parts[0] = hn::PromoteTo(D(), hn::LoadU(DHalf(), as<hwy::float16_t>(memory)));
    parts[1] = hn::PromoteTo(D(), hn::LoadU(DHalf(), as<hwy::float16_t>(memory + kBytes / 2)));
  }
  static HWY_INLINE void unpack(Bits words, V* parts) {
    const auto halves = hn::BitCast(D16(), words);
    parts[0] = hn::PromoteTo(D(), hn::BitCast(DHalf(), hn::LowerHalf(DWords(), halves)));
    parts[1] = hn::PromoteTo(D(), hn::BitCast(DHalf(), hn::UpperHalf(DWords(), halves)));
  }
  static HWY_INLINE Bits pack(const V* parts) {
    const auto low = hn::BitCast(DWords(), hn::DemoteTo(DHalf(), with_one_nan(D(), parts[0])));
    const auto high = hn::BitCast(DWords(), hn::DemoteTo(DHalf(), with_one_nan(D(), parts[1])));
    return hn::BitCast(DBits(), hn::Combine(D16(), high, low));
  }
  static HWY_INLINE Bits join(const Bits* codes) {
    const auto low = hn::DemoteTo(DWords(), hn::BitCast(hn::RebindToSigned<DBits>(), codes[0]));
    const auto high = hn::DemoteTo(DWords(), hn::BitCast(hn::RebindToSigned<DBits>(), codes[1]));
    return hn::BitCast(DBits(), hn::Combine(D16(), high, low));
  }
  static HWY_INLINE Bits index(size_t part) {
    return hn::Iota(DBits(), static_cast<uint32_t>(part * hn::MaxLanes(DBits())));
  }
};

// Through float16, which holds every number of both formats: E5M2 is its upper byte, E4M3FN its middle with another
// bias. The parts are the even bytes of the first and second half of memory, then the odd bytes. Rounding cannot go
// through float16.
template <const NarrowFormat& kFormat>
struct Float8Lanes : NarrowLanes {
  using DHalf = hn::Rebind<hwy::float16_t, D>;
  using D16 = hn::Repartition<uint16_t, D>;
  using V16 = hn::Vec<D16>;
  static constexpr size_t kElementBytes = 1;
  static constexpr size_t kParts = 4;
  static constexpr size_t kUnroll = 1;

  static HWY_INLINE void unpack(Bits raw, V* parts) {
    const V16 words = hn::BitCast(D16(), raw);
    widen_upper_bytes(hn::ShiftLeft<8>(words), parts[0], parts[1]);
    widen_upper_bytes(hn::And(words, hn::Set(D16(), uint16_t{0xff00})), parts[2], parts[3]);
  }
  static HWY_INLINE Bits pack(const V* parts) {
    Bits codes[kParts];
    for (size_t p = 0; p < kParts; ++p) codes[p] = narrow_lanes<kFormat>(parts[p]);
    return join(codes);
  }
  static HWY_INLINE Bits join(const Bits* codes) {
    const auto low = pairs(codes[0], codes[2]);
    return hn::BitCast(DBits(), hn::Combine(D16(), pairs(codes[1], codes[3]), low));
  }
  static HWY_INLINE Bits index(size_t part) {
    const size_t first = (part % 2) * 2 * hn::MaxLanes(DBits()) + part / 2;
    return hn::Add(hn::ShiftLeft<1>(hn::Iota(DBits(), 0)), bits(static_cast<uint32_t>(first)));
  }

 private:
  using DWords = hn::Rebind<uint16_t, D>;

  static HWY_INLINE void widen_upper_bytes(V16 codes, V& first, V& second) {
    constexpr bool kIsE4m3 = kFormat.mantissa_bits == 3;
    V16 halves = codes;
    if constexpr (kIsE4m3) {
      const hn::RebindToSigned<D16> d_signed;
      const V16 shifted = hn::BitCast(D16(), hn::ShiftRight<1>(hn::BitCast(d_signed, codes)));
      const V16 nan = hn::Set(D16(), static_cast<uint16_t>(kFormat.nan << 8));
      const auto is_nan = hn::Eq(hn::And(codes, nan), nan);
      const V16 number = hn::And(shifted, hn::Set(D16(), uint16_t{0xbf80}));
      halves = hn::IfThenElse(is_nan, hn::Set(D16(), static_cast<uint16_t>(kFloat16.nan)), number);
    }
    first = hn::PromoteTo(D(), hn::BitCast(DHalf(), hn::LowerHalf(DWords(), halves)));
    second = hn::PromoteTo(D(), hn::BitCast(DHalf(), hn::UpperHalf(DWords(), halves)));
    if constexpr (kIsE4m3) {
      const V scale = hn::Set(D(), static_cast<float>(1 << (kFloat16.bias - kFormat.bias)));
      first = hn::Mul(first, scale);
      second = hn::Mul(second, scale);
    }
  }
  static HWY_INLINE hn::Vec<DWords> pairs(Bits even, Bits odd) {
    const Bits words = hn::Or(even, hn::ShiftLeft<8>(odd));
    return hn::DemoteTo(DWords(), hn::BitCast(hn::RebindToSigned<DBits>(), words));
  }
};
#else
struct Float16Lanes : NarrowLanes {
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kParts = 2;
  static constexpr size_t kUnroll = 2;

  static HWY_INLINE void unpack(Bits words, V* parts) {
    parts[0] = widen_lanes<kFloat16>(words);
    parts[1] = widen_lanes<kFloat16>(hn::ShiftRight<16>(words));
  }
  static HWY_INLINE Bits pack(const V* parts) {
    const Bits codes[] = {narrow_lanes<kFloat16>(parts[0]), narrow_lanes<kFloat16>(parts[1])};
    return join(codes);
  }
  static HWY_INLINE Bits join(const Bits* codes) { return hn::Or(codes[0], hn::ShiftLeft<16>(codes[1])); }
  static HWY_INLINE Bits index(size_t part) { return index_in_words<1>(part); }
};

template <const NarrowFormat& kFormat>
struct Float8Lanes : NarrowLanes {
  static constexpr size_t kElementBytes = 1;
  static constexpr size_t kParts = 4;
  static constexpr size_t kUnroll = 1;

  static HWY_INLINE void unpack(Bits words, V* parts) {
    parts[0] = widen_lanes<kFormat>(words);
    parts[1] = widen_lanes<kFormat>(hn::ShiftRight<8>(words));
    parts[2] = widen_lanes<kFormat>(hn::ShiftRight<16>(words));
    parts[3] = widen_lanes<kFormat>(hn::ShiftRight<24>(words));
  }
  static HWY_INLINE Bits pack(const V* parts) {
    Bits codes[kParts];
    for (size_t p = 0; p < kParts; ++p) codes[p] = narrow_lanes<kFormat>(parts[p]);
    return join(codes);
  }
  static HWY_INLINE Bits join(const Bits* codes) {
    const Bits low = hn::Or(codes[0], hn::ShiftLeft<8>(codes[1]));
    const Bits high = hn::Or(codes[2], hn::ShiftLeft<8>(codes[3]));
    return hn::Or(low, hn::ShiftLeft<16>(high));
  }
  static HWY_INLINE Bits index(size_t part) { return index_in_words<2>(part); }
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace ccom
HWY_AFTER_NAMESPACE();

#endif
