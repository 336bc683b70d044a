// SPDX-License-Identifier: Apache-2.0
//
// The structures of ccom.h that programs of earlier and later versions pass: they begin with their size, and grow at
// their end only. Fields that the caller's header has not take their defaults; fields that this library does not know
// must be 0 when they are given, and become 0 when they are returned.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/status.h"
#include "ccom/ccom.h"

namespace ccom {

// What these structures begin with.
struct StructHead {
  size_t size;
  uint32_t magic;
  uint32_t version;
};

// How error texts call the argument, and the macro that initialises it.
struct StructNames {
  const char* argument;
  const char* macro;
};

// InvalidArgument for NULL, and for what the macro has not initialised.
Status check_head(const void* given, const StructNames& names);
// InvalidArgument if the bytes of `given` from `known` on, which this library does not know, are not 0.
Status check_unknown(const void* given, size_t known, const StructNames& names);

template <typename T>
Status check_struct(const T* given, const StructNames& names) {
  // A gap would be a place for a field that an earlier library neither knows nor finds to be 0.
  static_assert(std::has_unique_object_representations_v<T>);
  static_assert(offsetof(T, size) == offsetof(StructHead, size));
  static_assert(offsetof(T, magic) == offsetof(StructHead, magic));
  static_assert(offsetof(T, version) == offsetof(StructHead, version));
  return check_head(given, names);
}

// What the caller has given, over the values that its macro would have written here.
template <typename T>
Result<T> read_struct(const T* given, const T& defaults, const StructNames& names) {
  CCOM_TRY(check_struct(given, names));
  CCOM_TRY(check_unknown(given, sizeof(T), names));
  T known = defaults;
  std::memcpy(&known, given, std::min(given->size, sizeof(T)));
  return known;
}

// Fills what the caller has room for, after check_struct.
template <typename T>
void write_struct(const T& filled, T* target) {
  const size_t size = target->size;
  const size_t known = std::min(size, sizeof(T));
  std::byte* const to = reinterpret_cast<std::byte*>(target);
  const std::byte* const from = reinterpret_cast<const std::byte*>(&filled);
  std::memcpy(to + sizeof(StructHead), from + sizeof(StructHead), known - sizeof(StructHead));
  std::memset(to + known, 0, size - known);
}

}  // namespace ccom
