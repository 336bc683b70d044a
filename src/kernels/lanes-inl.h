// SPDX-License-Identifier: Apache-2.0
//
// How each type travels between memory and vector lanes, once per instruction set (Highway's foreach_target).
//
// A "lanes" type moves kBytes bytes of memory at a time: load() and store() as `Raw`, from and to any address, stream()
// past the caches to an address that is a multiple of kBytes, load_partial() and store_partial() fewer bytes than
// kBytes. unpack() spreads a Raw over kParts vectors `V`, pack() is the way back. Which element ends up in which lane
// is its own business, since every operator works elementwise. pack() turns every NaN into the type's one positive
// quiet NaN, because processors disagree about the sign and payload of NaNs that they make or pick.
#if defined(CCOM_KERNELS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CCOM_KERNELS_LANES_INL_H_
#undef CCOM_KERNELS_LANES_INL_H_
#else
#define CCOM_KERNELS_LANES_INL_H_
#endif

#include "hwy/highway.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace ccom {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE const T* as(const std::byte* memory) {
  return reinterpret_cast<const T*>(memory);
}
template <class T>
HWY_INLINE T* as(std::byte* memory) {
  return reinterpret_cast<T*>(memory);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V with_one_nan(D d, V v) {
  return hn::IfThenElse(hn::IsNaN(v), hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN()), v);
}

// For fewer than kLimit <= 64 bytes: a call of memcpy takes longer. Two moves that may overlap, the largest that fit.
template <size_t kLimit>
HWY_INLINE void copy_few_bytes(std::byte* to, const std::byte* from, size_t size_bytes) {
  const auto twice = [=](auto piece) HWY_ATTR {
    const size_t second = size_bytes - sizeof(piece);
    auto last = piece;
    std::memcpy(&piece, from, sizeof(piece));
    std::memcpy(&last, from + second, sizeof(piece));
    std::memcpy(to, &piece, sizeof(piece));
    std::memcpy(to + second, &last, sizeof(piece));
  };
  struct Bytes16 {
    uint64_t low, high;
  };
  struct Bytes32 {
    Bytes16 low, high;
  };
  if (kLimit > 32 && size_bytes >= 32) return twice(Bytes32{});
  if (kLimit > 16 && size_bytes >= 16) return twice(Bytes16{});
  if (kLimit > 8 && size_bytes >= 8) return twice(uint64_t{});
  if (kLimit > 4 && size_bytes >= 4) return twice(uint32_t{});
  if (kLimit > 2 && size_bytes >= 2) return twice(uint16_t{});
  if (size_bytes == 1) *to = *from;
}

// How many vectors a lanes type takes at a time. Where no processor of today ends up, compile time counts for more.
constexpr size_t unrolled(size_t vectors) { return HWY_TARGET == HWY_SCALAR ? 1 : vectors; }

template <class T>
struct RawLanes {
  using DRaw = hn::ScalableTag<T>;
  using Raw = hn::Vec<DRaw>;
  static constexpr size_t kBytes = hn::MaxLanes(DRaw()) * sizeof(T);

  static HWY_INLINE Raw load(const std::byte* memory) { return hn::LoadU(DRaw(), as<T>(memory)); }
  static HWY_INLINE void store(Raw raw, std::byte* memory) { hn::StoreU(raw, DRaw(), as<T>(memory)); }
  static HWY_INLINE void stream(Raw raw, std::byte* memory) { hn::Stream(raw, DRaw(), as<T>(memory)); }

  // The bytes that are not loaded are 0.
  static HWY_INLINE Raw load_partial(const std::byte* memory, size_t size_bytes) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
    const hn::Repartition<uint8_t, DRaw> d8;
    return hn::BitCast(DRaw(), hn::MaskedLoad(hn::FirstN(d8, size_bytes), d8, as<uint8_t>(memory)));
#else
    HWY_ALIGN std::byte padded[kBytes] = {};
    copy_few_bytes<kBytes>(padded, memory, size_bytes);
    return hn::Load(DRaw(), as<T>(padded));
#endif
  }
  static HWY_INLINE void store_partial(Raw raw, std::byte* memory, size_t size_bytes) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
    const hn::Repartition<uint8_t, DRaw> d8;
    hn::BlendedStore(hn::BitCast(d8, raw), hn::FirstN(d8, size_bytes), d8, as<uint8_t>(memory));
#else
    HWY_ALIGN std::byte padded[kBytes];
    hn::Store(raw, DRaw(), as<T>(padded));
    copy_few_bytes<kBytes>(memory, padded, size_bytes);
#endif
  }
};

template <class T>
struct IntegerLanes : RawLanes<T> {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr size_t kElementBytes = sizeof(T);
  static constexpr size_t kParts = 1;
  static constexpr size_t kUnroll = unrolled(4);

  static HWY_INLINE void unpack(V raw, V* parts) { parts[0] = raw; }
  static HWY_INLINE V pack(const V* parts) { return parts[0]; }
};

template <class T>
struct FloatLanes : IntegerLanes<T> {
  using typename IntegerLanes<T>::D;
  using typename IntegerLanes<T>::V;

  static HWY_INLINE V pack(const V* parts) { return with_one_nan(D(), parts[0]); }
};

#if HWY_TARGET == HWY_SCALAR
// Real parts in parts[0], imaginary ones in parts[1].
template <class T>
struct ComplexLanes {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  struct Raw {
    V real, imaginary;
  };
  static constexpr size_t kParts = 2;
  static constexpr size_t kUnroll = unrolled(2);
  static constexpr size_t kBytes = 2 * sizeof(T);
  static constexpr size_t kElementBytes = 2 * sizeof(T);

  static HWY_INLINE Raw load(const std::byte* memory) {
    return {hn::LoadU(D(), as<T>(memory)), hn::LoadU(D(), as<T>(memory) + 1)};
  }
  static HWY_INLINE void store(Raw raw, std::byte* memory) {
    hn::StoreU(raw.real, D(), as<T>(memory));
    hn::StoreU(raw.imaginary, D(), as<T>(memory) + 1);
  }
  static HWY_INLINE void stream(Raw raw, std::byte* memory) { store(raw, memory); }
  static HWY_INLINE Raw load_partial(const std::byte* memory, size_t /*no less than an element*/) {
    return load(memory);
  }
  static HWY_INLINE void store_partial(Raw raw, std::byte* memory, size_t) { store(raw, memory); }
  static HWY_INLINE void unpack(Raw raw, V* parts) {
    parts[0] = raw.real;
    parts[1] = raw.imaginary;
  }
  static HWY_INLINE Raw pack(const V* parts) { return {with_one_nan(D(), parts[0]), with_one_nan(D(), parts[1])}; }
};
#else
// Real parts in the even lanes, imaginary ones in the odd lanes.
template <class T>
struct ComplexLanes : FloatLanes<T> {
  static constexpr size_t kElementBytes = 2 * sizeof(T);
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace ccom
HWY_AFTER_NAMESPACE();

#endif
