// SPDX-License-Identifier: Apache-2.0
//
// The format of an element type, chosen at run time.
#pragma once

#include <ccom/ccom.h>

#include "bench/formats.h"

namespace ccom::bench {

// Calls `function` with a value of the type's format.
template <class Function>
auto with_codec(ccomDataType_t type, Function&& function) {
  switch (type) {
    case ccomInt8: return function(Integer<int8_t>{});
    case ccomUint8: return function(Integer<uint8_t>{});
    case ccomInt16: return function(Integer<int16_t>{});
    case ccomUint16: return function(Integer<uint16_t>{});
    case ccomInt32: return function(Integer<int32_t>{});
    case ccomUint32: return function(Integer<uint32_t>{});
    case ccomInt64: return function(Integer<int64_t>{});
    case ccomUint64: return function(Integer<uint64_t>{});
    case ccomFloat16: return function(Half{});
    case ccomBfloat16: return function(Brain{});
    case ccomFloat64: return function(WideFloat<double>{});
    case ccomFloat8e4m3: return function(E4M3{});
    case ccomFloat8e5m2: return function(E5M2{});
    case ccomBool: return function(Boolean{});
    case ccomComplex64: return function(ComplexOf<float>{});
    case ccomComplex128: return function(ComplexOf<double>{});
    case ccomFloat32:
    case ccomDataTypeForceInt: break;
  }
  return function(WideFloat<float>{});
}

// An integer as the map x -> a x + b modulo 2^k, a in the upper half of its bits and b in the k bits below: `left`
// after `right`. Associative, and does not commute.
template <class T>
T compose(T left, T right) {
  constexpr int kHalf = sizeof(T) * 4;
  constexpr uint64_t kMask = (uint64_t{1} << kHalf) - 1;
  const auto f = static_cast<uint64_t>(left), g = static_cast<uint64_t>(right);
  const uint64_t f_a = f >> kHalf & kMask, g_a = g >> kHalf & kMask;
  const uint64_t a = f_a * g_a & kMask, b = (f_a * (g & kMask) + (f & kMask)) & kMask;
  return static_cast<T>(a << kHalf | b);
}

}  // namespace ccom::bench
