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
  static constexpr size_t kUnroll = unrolled(2);

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

// Rounds by adding the power of two whose last place is the result's: the sum then ends in the rounded mantissa, with
// its implicit one, and counts of how many exponents above the smallest it lies.
template <const NarrowFormat& kFormat>
HWY_INLINE hn::Vec<hn::ScalableTag<uint32_t>> narrow_lanes(hn::Vec<hn::ScalableTag<float>> value) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<uint32_t> du;
  const hn::ScalableTag<int32_t> di;
  constexpr int kShift = kFormat.mantissa_shift();
  constexpr int32_t kOverflow = (kFormat.overflow << kShift) + kFormat.exponent_offset();
  constexpr int32_t kLowestRounder = kFormat.subnormal_rounder();
  const auto bits = hn::BitCast(di, value);
  const auto magnitude = hn::Min(hn::And(bits, hn::Set(di, 0x7fffffff)), hn::Set(di, kOverflow));
  const auto exponent = hn::And(magnitude, hn::Set(di, 0x7f800000));
  const auto lowest = hn::Set(di, kLowestRounder);
  const auto rounder = hn::Max(hn::Add(exponent, hn::Set(di, kShift << 23)), lowest);
  const auto sum = hn::BitCast(di, hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, rounder)));
  const auto mantissa = hn::BitCast(du, hn::Sub(sum, rounder));
  const auto code = hn::Add(mantissa, hn::ShiftRight<kShift>(hn::BitCast(du, hn::Sub(rounder, lowest))));
  const auto sign =
      hn::And(hn::ShiftRight<32 - kFormat.bits()>(hn::BitCast(du, bits)), hn::Set(du, kFormat.magnitude_mask() + 1));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(value));
  return hn::IfThenElse(is_nan, hn::Set(du, kFormat.nan), hn::Or(code, sign));
}

// F16C converts exactly as formats.h does, whatever the flush modes; elsewhere the integer way.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
struct Float16Lanes : NarrowLanes {
  using DHalf = hn::Rebind<hwy::float16_t, D>;
  using D16 = hn::Repartition<uint16_t, D>;
  using DWords = hn::Rebind<uint16_t, D>;
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kParts = 2;
  static constexpr size_t kUnroll = unrolled(2);

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
    return hn::Add(hn::Iota(DBits(), 0), bits(static_cast<uint32_t>(part * hn::MaxLanes(DBits()))));
  }
};

#else
struct Float16Lanes : NarrowLanes {
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kParts = 2;
  static constexpr size_t kUnroll = unrolled(2);

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
#endif

#if HWY_TARGET != HWY_SCALAR
// The two upper bytes of the floats that the 16 smallest magnitudes are, subnormals among them; for every 16 bytes of a
// vector, since compilers would repeat the repetition in every loop.
struct SmallFloats {
  HWY_ALIGN uint8_t upper[64];
  HWY_ALIGN uint8_t lower[64];
};

template <const NarrowFormat& kFormat>
constexpr SmallFloats small_floats() {
  SmallFloats result{};
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(widen(kFormat, i % 16));
    result.upper[i] = static_cast<uint8_t>(bits >> 24);
    result.lower[i] = static_cast<uint8_t>(bits >> 16);
  }
  return result;
}
#endif

template <const NarrowFormat& kFormat>
struct Float8Lanes : NarrowLanes {
  static constexpr size_t kElementBytes = 1;
  static constexpr size_t kParts = 4;
  static constexpr size_t kUnroll = 1;

#if HWY_TARGET == HWY_SCALAR
  static HWY_INLINE void unpack(Bits words, V* parts) {
    parts[0] = widen_lanes<kFormat>(words);
    parts[1] = widen_lanes<kFormat>(hn::ShiftRight<8>(words));
    parts[2] = widen_lanes<kFormat>(hn::ShiftRight<16>(words));
    parts[3] = widen_lanes<kFormat>(hn::ShiftRight<24>(words));
  }
#else
  // As floats, all numbers are 0 but for their two upper bytes. Those are made for all elements at once.
  static HWY_INLINE void unpack(Bits words, V* parts) {
    const auto codes = hn::BitCast(D8(), words);
    const auto magnitude = hn::And(codes, bytes(0x7f));
    const auto sign = hn::AndNot(bytes(0x7f), codes);
    const Bits upper = hn::BitCast(DBits(), hn::Or(upper_bytes(magnitude), sign));
    const Bits lower = hn::BitCast(DBits(), lower_bytes(magnitude));
    const Bits even = hn::Or(hn::And(lower, bits(0x00ff00ff)), shift_up(upper));
    const Bits odd = hn::Or(shift_down(lower), hn::And(upper, bits(0xff00ff00)));
    parts[0] = hn::BitCast(D(), hn::ShiftLeft<16>(even));
    parts[1] = hn::BitCast(D(), hn::ShiftLeft<16>(odd));
    parts[2] = hn::BitCast(D(), hn::And(even, bits(0xffff0000)));
    parts[3] = hn::BitCast(D(), hn::And(odd, bits(0xffff0000)));
  }
#endif
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

#if HWY_TARGET != HWY_SCALAR
 private:
  using D8 = hn::Repartition<uint8_t, DBits>;
  using DSigned8 = hn::Repartition<int8_t, DBits>;
  using D16 = hn::Repartition<uint16_t, DBits>;
  using V8 = hn::Vec<D8>;
  static constexpr SmallFloats kSmall = small_floats<kFormat>();
  // The exponent's last bit goes to the lower byte.
  static constexpr int kLowerBits = kFormat.mantissa_bits + 1;
  static_assert((127 - kFormat.bias) % 2 == 0);

  static HWY_INLINE V8 bytes(uint8_t value) { return hn::Set(D8(), value); }
  static HWY_INLINE Bits shift_up(Bits v) { return hn::BitCast(DBits(), hn::ShiftLeft<8>(hn::BitCast(D16(), v))); }
  static HWY_INLINE Bits shift_down(Bits v) { return hn::BitCast(DBits(), hn::ShiftRight<8>(hn::BitCast(D16(), v))); }
  static HWY_INLINE V8 small_or(V8 magnitude, const uint8_t* table, V8 otherwise) {
    const auto is_small = hn::Lt(hn::BitCast(DSigned8(), magnitude), hn::Set(DSigned8(), int8_t{16}));
    const V8 small = hn::TableLookupBytes(hn::Load(D8(), table), magnitude);
    return hn::IfThenElse(hn::RebindMask(D8(), is_small), small, otherwise);
  }
  static HWY_INLINE V8 upper_bytes(V8 magnitude) {
    const V8 normal = hn::Add(hn::ShiftRight<kLowerBits>(magnitude), bytes((127 - kFormat.bias) / 2));
    const auto is_special =
        hn::Gt(hn::BitCast(DSigned8(), magnitude), hn::Set(DSigned8(), static_cast<int8_t>(kFormat.max_finite)));
    return hn::IfThenElse(hn::RebindMask(D8(), is_special), bytes(0x7f), small_or(magnitude, kSmall.upper, normal));
  }
  static HWY_INLINE V8 lower_bytes(V8 magnitude) {
    return small_or(magnitude, kSmall.lower, hn::ShiftLeft<8 - kLowerBits>(magnitude));
  }
#endif
};

}  // namespace HWY_NAMESPACE
}  // namespace ccom
HWY_AFTER_NAMESPACE();

#endif
