// SPDX-License-Identifier: Apache-2.0
//
// How each type travels between memory and vector lanes, once per instruction set (Highway's foreach_target).
//
// A "lanes" type moves kBytes bytes of memory at a time, from any address, into kParts vectors `V` and back. Which
// element ends up in which lane is its own business, since every operator works elementwise. store() turns every NaN
// into the type's one positive quiet NaN, because processors disagree about the sign and payload of NaNs that they make
// or pick.
#if defined(CCOM_KERNELS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CCOM_KERNELS_LANES_INL_H_
#undef CCOM_KERNELS_LANES_INL_H_
#else
#define CCOM_KERNELS_LANES_INL_H_
#endif

#include "hwy/highway.h"

#include <cstddef>
#include <cstdint>
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

template <class T>
struct IntegerLanes {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr size_t kParts = 1;
  static constexpr size_t kUnroll = 4;
  static constexpr size_t kBytes = hn::MaxLanes(D()) * sizeof(T);

  static HWY_INLINE void load(const std::byte* memory, V* parts) { parts[0] = hn::LoadU(D(), as<T>(memory)); }
  static HWY_INLINE void store(const V* parts, std::byte* memory) { hn::StoreU(parts[0], D(), as<T>(memory)); }
};

template <class T>
struct FloatLanes : IntegerLanes<T> {
  using typename IntegerLanes<T>::D;
  using typename IntegerLanes<T>::V;

  static HWY_INLINE void store(const V* parts, std::byte* memory) {
    hn::StoreU(with_one_nan(D(), parts[0]), D(), as<T>(memory));
  }
};

// Real parts in parts[0], imaginary ones in parts[1].
template <class T>
struct ComplexLanes {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr size_t kParts = 2;
  static constexpr size_t kUnroll = 2;
  static constexpr size_t kBytes = 2 * hn::MaxLanes(D()) * sizeof(T);

  static HWY_INLINE void load(const std::byte* memory, V* parts) {
    hn::LoadInterleaved2(D(), as<T>(memory), parts[0], parts[1]);
  }
  static HWY_INLINE void store(const V* parts, std::byte* memory) {
    hn::StoreInterleaved2(with_one_nan(D(), parts[0]), with_one_nan(D(), parts[1]), D(), as<T>(memory));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace ccom
HWY_AFTER_NAMESPACE();

#endif
