// SPDX-License-Identifier: Apache-2.0
//
// Sums and conversions of scaled blocks, once per instruction set: kBlockValues floats at a time, in the first-level
// cache.
#if defined(CCOM_KERNELS_SCALED_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CCOM_KERNELS_SCALED_BLOCKS_INL_H_
#undef CCOM_KERNELS_SCALED_BLOCKS_INL_H_
#else
#define CCOM_KERNELS_SCALED_BLOCKS_INL_H_
#endif

#include "kernels/formats.h"
#include "kernels/kernel.h"
#include "kernels/narrow_lanes-inl.h"
#include "kernels/scaled_blocks.h"
#include "kernels/stochastic_lanes-inl.h"

#include "hwy/highway.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace ccom {
namespace HWY_NAMESPACE {

// Vectors of floats, and what goes with them lane by lane.
struct BlockLanes {
  using D = hn::ScalableTag<float>;
  using DInt = hn::RebindToSigned<D>;
  using DBits = hn::RebindToUnsigned<D>;
  using V = hn::Vec<D>;
  template <class T>
  using Packed = hn::Rebind<T, D>;
  static constexpr size_t kLanes = hn::MaxLanes(D());
  static_assert(kBlockValues % kLanes == 0);
};

// The largest magnitude of a block, as bits; those of infinities and NaNs are 0x7f800000 and more.
HWY_INLINE uint32_t largest_magnitude(const float* values) {
  const BlockLanes::D d;
  const BlockLanes::DInt di;
  auto most = hn::Zero(di);
  for (size_t i = 0; i < kBlockValues; i += BlockLanes::kLanes)
    most = hn::Max(most, hn::BitCast(di, hn::Abs(hn::Load(d, values + i))));
  return static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(di, most)));
}

constexpr uint32_t kOneExponent = 1u << 23;
constexpr uint32_t kInfinity = 0x7f800000;

struct Float8Codes : BlockLanes {
  static constexpr uint32_t kExponentsAbove = 7;      // of the scale below that of the largest number
  static constexpr uint32_t kOverflow = 0x7f780000u;  // magnitudes from here on are rounded to 2^128

  static HWY_INLINE float scale_of(uint32_t largest) {
    const uint32_t exponent = largest & kInfinity;
    return std::bit_cast<float>(std::max(exponent, (kExponentsAbove + 1) << 23) - (kExponentsAbove << 23));
  }
  static HWY_INLINE float inverse_of(float scale) {
    return std::bit_cast<float>(254 * kOneExponent - std::bit_cast<uint32_t>(scale));
  }
  static HWY_INLINE void encode(V scaled, unsigned char* codes) {
    const auto code = hn::BitCast(DInt(), narrow_lanes<kFloat8e4m3>(scaled));
    hn::StoreU(hn::DemoteTo(Packed<uint8_t>(), code), Packed<uint8_t>(), codes);
  }
  static HWY_INLINE V decode(const unsigned char* codes) {
    return widen_lanes<kFloat8e4m3>(hn::PromoteTo(DBits(), hn::LoadU(Packed<uint8_t>(), codes)));
  }
};

struct Int8Codes : BlockLanes {
  static constexpr uint32_t kOverflow = kInfinity;

  static HWY_INLINE float scale_of(uint32_t largest) {
    const float above = std::bit_cast<float>(largest) / 127.0f;
    return std::bit_cast<float>(std::max(std::bit_cast<uint32_t>(above), kOneExponent + 1) - 1);
  }
  static HWY_INLINE float inverse_of(float scale) { return 1.0f / scale; }
  static HWY_INLINE void encode(V scaled, unsigned char* codes) {
    const auto most = hn::Set(DInt(), 127);
    const auto code = hn::Max(hn::Min(hn::NearestInt(scaled), most), hn::Neg(most));
    hn::StoreU(hn::DemoteTo(Packed<int8_t>(), code), Packed<int8_t>(), reinterpret_cast<int8_t*>(codes));
  }
  static HWY_INLINE V decode(const unsigned char* codes) {
    const auto code = hn::LoadU(Packed<int8_t>(), reinterpret_cast<const int8_t*>(codes));
    return hn::ConvertTo(D(), hn::PromoteTo(DInt(), code));
  }
};

template <class Codes>
HWY_INLINE void encode_block(const float* values, std::byte* block) {
  const typename Codes::D d;
  ScaledBlock made;
  const uint32_t largest = largest_magnitude(values);
  if (largest >= Codes::kOverflow) {
    made = {std::bit_cast<float>(0x7fc00000u), {}};
  } else {
    made.scale = Codes::scale_of(largest);
    const auto inverse = hn::Set(d, Codes::inverse_of(made.scale));
    for (size_t i = 0; i < kBlockValues; i += Codes::kLanes)
      Codes::encode(hn::Mul(hn::Load(d, values + i), inverse), made.codes + i);
  }
  std::memcpy(block, &made, sizeof made);
}

// kAdds: to what is there.
template <class Codes, bool kAdds>
HWY_INLINE void decode_block(const std::byte* block, float* values) {
  const typename Codes::D d;
  const auto* const from = as<ScaledBlock>(block);
  float scale;
  std::memcpy(&scale, block, sizeof scale);
  for (size_t i = 0; i < kBlockValues; i += Codes::kLanes) {
    auto value = hn::Mul(Codes::decode(from->codes + i), hn::Set(d, scale));
    if constexpr (kAdds) value = hn::Add(hn::Load(d, values + i), value);
    hn::Store(value, d, values + i);
  }
}

template <class Codes>
void reduce_blocks(const KernelCall& call) {
  const BlockLanes::D d;
  HWY_ALIGN float sum[kBlockValues];
  for (size_t at = call.begin_bytes; at < call.end_bytes; at += sizeof(ScaledBlock)) {
    decode_block<Codes, false>(call.inputs[0] + at, sum);
    for (size_t k = 1; k < call.input_count; ++k) decode_block<Codes, true>(call.inputs[k] + at, sum);
    if (call.divisor != 1) {
      const auto divisor = hn::Set(d, static_cast<float>(call.divisor));
      for (size_t i = 0; i < kBlockValues; i += BlockLanes::kLanes)
        hn::Store(hn::Div(hn::Load(d, sum + i), divisor), d, sum + i);
    }
    encode_block<Codes>(sum, call.outputs[0] + at);
    for (size_t m = 1; m < call.output_count; ++m) {
      if (call.outputs[m] != call.outputs[0])
        std::memcpy(call.outputs[m] + at, call.outputs[0] + at, sizeof(ScaledBlock));
    }
  }
}

Kernels find_block_kernel(DataType type, ReduceOp op) {
  if (op != ReduceOp::Sum && op != ReduceOp::Avg) return {};
  return {type == DataType::Float8Block ? &reduce_blocks<Float8Codes> : &reduce_blocks<Int8Codes>, nullptr};
}

// ---- Conversions ----------------------------------------------------------------------------------------------------

// Types of one number, a vector of floats at a time.
struct Floats : BlockLanes {
  static constexpr size_t kBytes = sizeof(float);
  static HWY_INLINE V load(const std::byte* memory) { return hn::LoadU(D(), as<float>(memory)); }
  static HWY_INLINE void store(V value, std::byte* memory) { hn::StoreU(value, D(), as<float>(memory)); }
};

template <const NarrowFormat& kFormat>
struct Narrows : BlockLanes {
  static constexpr size_t kBytes = static_cast<size_t>(kFormat.bits()) / 8;
  using Code = std::conditional_t<kBytes == 2, uint16_t, uint8_t>;
  static HWY_INLINE V load(const std::byte* memory) {
    const auto code = hn::PromoteTo(DBits(), hn::LoadU(Packed<Code>(), as<Code>(memory)));
    if constexpr (kFormat.bias == 127) {
      return hn::BitCast(D(), hn::ShiftLeft<16>(code));
    } else {
      return widen_lanes<kFormat>(code);
    }
  }
  static HWY_INLINE void store(V value, std::byte* memory) { store_codes(code_of(value), memory); }
  static HWY_INLINE void store_codes(hn::Vec<DBits> codes, std::byte* memory) {
    hn::StoreU(hn::DemoteTo(Packed<Code>(), hn::BitCast(DInt(), codes)), Packed<Code>(), as<Code>(memory));
  }

 private:
  static HWY_INLINE auto code_of(V value) {
    if constexpr (kFormat.bias == 127) {
      const auto bits = hn::BitCast(DBits(), with_one_nan(D(), value));
      const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(DBits(), 1u));
      const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(DBits(), 0x7fffu))));
      return hn::IfThenElse(hn::RebindMask(DBits(), hn::IsNaN(value)), hn::Set(DBits(), kFormat.nan), rounded);
    } else {
      return narrow_lanes<kFormat>(value);
    }
  }
};

template <class Type>
HWY_INLINE void load_values(const std::byte* input, float* values) {
  for (size_t i = 0; i < kBlockValues; i += Type::kLanes)
    hn::Store(Type::load(input + i * Type::kBytes), BlockLanes::D(), values + i);
}
template <class Type>
HWY_INLINE void store_values(const float* values, std::byte* output) {
  for (size_t i = 0; i < kBlockValues; i += Type::kLanes)
    Type::store(hn::Load(BlockLanes::D(), values + i), output + i * Type::kBytes);
}

// From and To move kBlockValues numbers between memory and floats; the last few through memory of our own.
template <class Type, size_t kWhole = kBlockValues* Type::kBytes>
struct Values {
  static constexpr size_t kBytes = kWhole;
  static constexpr size_t bytes(size_t values) { return values * Type::kBytes; }
  static HWY_INLINE void load(const std::byte* input, float* values) { load_values<Type>(input, values); }
  static HWY_INLINE void store(const float* values, std::byte* output) { store_values<Type>(values, output); }
};
template <class Codes>
struct Blocks {
  static constexpr size_t kBytes = sizeof(ScaledBlock);
  static constexpr size_t bytes(size_t) { return kBytes; }
  static HWY_INLINE void load(const std::byte* input, float* values) { decode_block<Codes, false>(input, values); }
  static HWY_INLINE void store(const float* values, std::byte* output) { encode_block<Codes>(values, output); }
};

template <class From, class To>
void convert_values(const std::byte* input, std::byte* output, size_t count) {
  HWY_ALIGN float values[kBlockValues];
  for (; count >= kBlockValues; count -= kBlockValues, input += From::kBytes, output += To::kBytes) {
    From::load(input, values);
    To::store(values, output);
  }
  if (count == 0) return;
  std::byte few[std::max(From::kBytes, To::kBytes)] = {};
  std::memcpy(few, input, From::bytes(count));
  From::load(few, values);
  std::fill(values + count, values + kBlockValues, 0.0f);
  To::store(values, few);
  std::memcpy(output, few, To::bytes(count));
}

// random_for_element() and random_for_bfloat16(), lane by lane.
template <const NarrowFormat& kFormat>
HWY_INLINE hn::Vec<BlockLanes::DBits> random_for_lanes(RandomKey key, hn::Vec<BlockLanes::DBits> index) {
  if constexpr (kFormat.bias != 127) {
    return random_lanes(key, index);
  } else {
    const BlockLanes::DBits d;
    const auto pair = random_lanes(key, hn::ShiftRight<1>(index));
    const auto is_even = hn::Eq(hn::And(index, hn::Set(d, 1u)), hn::Zero(d));
    return hn::Not(hn::IfThenElse(is_even, hn::ShiftLeft<16>(pair), pair));
  }
}

template <const NarrowFormat& kFormat>
void round_at_random(const std::byte* input, std::byte* output, size_t count, RandomKey key, uint32_t first) {
  using To = Narrows<kFormat>;
  constexpr size_t kLanes = BlockLanes::kLanes, kInput = kLanes * sizeof(float), kOutput = kLanes * To::kBytes;
  const BlockLanes::DBits d;
  auto index = hn::Add(hn::Iota(d, 0), hn::Set(d, first));
  const auto round = [&](const std::byte* from, std::byte* to) HWY_ATTR {
    To::store_codes(narrow_stochastic_lanes<kFormat>(Floats::load(from), random_for_lanes<kFormat>(key, index)), to);
    index = hn::Add(index, hn::Set(d, static_cast<uint32_t>(kLanes)));
  };
  for (; count >= kLanes; count -= kLanes, input += kInput, output += kOutput) round(input, output);
  if (count == 0) return;
  std::byte few[kInput] = {}, rounded[kOutput];
  std::memcpy(few, input, count * sizeof(float));
  round(few, rounded);
  std::memcpy(output, rounded, count * To::kBytes);
}

using RandomConverter = void (*)(const std::byte*, std::byte*, size_t, RandomKey, uint32_t);

RandomConverter find_random_converter(DataType to) {
  switch (to) {
    case DataType::Bfloat16: return &round_at_random<kBfloat16>;
    case DataType::Float16: return &round_at_random<kFloat16>;
    case DataType::Float8e4m3: return &round_at_random<kFloat8e4m3>;
    case DataType::Float8e5m2: return &round_at_random<kFloat8e5m2>;
    default: return nullptr;
  }
}

using Converter = void (*)(const std::byte*, std::byte*, size_t);

template <class Type>
Converter from_or_to_floats(bool from_floats) {
  return from_floats ? &convert_values<Values<Floats>, Type> : &convert_values<Type, Values<Floats>>;
}

Converter find_converter(DataType from, DataType to) {
  if (to == DataType::Bfloat16 && from == DataType::Float8Block)
    return &convert_values<Blocks<Float8Codes>, Values<Narrows<kBfloat16>>>;
  if (to == DataType::Bfloat16 && from == DataType::Int8Block)
    return &convert_values<Blocks<Int8Codes>, Values<Narrows<kBfloat16>>>;
  const bool from_floats = from == DataType::Float32;
  if (!from_floats && to != DataType::Float32) return nullptr;
  switch (from_floats ? to : from) {
    case DataType::Float8Block: return from_or_to_floats<Blocks<Float8Codes>>(from_floats);
    case DataType::Int8Block: return from_or_to_floats<Blocks<Int8Codes>>(from_floats);
    case DataType::Bfloat16: return from_or_to_floats<Values<Narrows<kBfloat16>>>(from_floats);
    case DataType::Float16: return from_or_to_floats<Values<Narrows<kFloat16>>>(from_floats);
    case DataType::Float8e4m3: return from_or_to_floats<Values<Narrows<kFloat8e4m3>>>(from_floats);
    case DataType::Float8e5m2: return from_or_to_floats<Values<Narrows<kFloat8e5m2>>>(from_floats);
    default: return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ccom
HWY_AFTER_NAMESPACE();

#endif
