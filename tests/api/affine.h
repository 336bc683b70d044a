// SPDX-License-Identifier: Apache-2.0
//
// A user's operator that does not commute and whose results are exact: maps x -> a x + b modulo 2^32, one after
// another, as pairs in a uint64.
#pragma once

#include <ccom/ccom.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ccom {

struct Affine {
  uint32_t a, b;
  friend bool operator==(const Affine&, const Affine&) = default;
};
inline Affine compose(const Affine& f, const Affine& g) { return {f.a * g.a, f.a * g.b + f.b}; }

extern "C" inline ccomResult_t compose_maps(const void* in, void* inout, size_t count, ccomDataType_t type, void*) {
  if (type != ccomUint64) return ccomInvalidArgument;
  const auto* const left = static_cast<const Affine*>(in);
  auto* const right = static_cast<Affine*>(inout);
  for (size_t i = 0; i < count; ++i) right[i] = compose(left[i], right[i]);
  return ccomSuccess;
}

// Element i of a rank's input, and of the result of all.
inline Affine map_of(int rank, size_t i) {
  return {static_cast<uint32_t>(2 * (i % 1000) + 3 + 4 * static_cast<size_t>(rank)),
          static_cast<uint32_t>(i * 2654435761U + static_cast<uint32_t>(rank) * 40503U)};
}
inline Affine composed(int nranks, size_t i) {
  Affine all = map_of(0, i);
  for (int rank = 1; rank < nranks; ++rank) all = compose(all, map_of(rank, i));
  return all;
}
inline std::vector<Affine> maps_of(int rank, size_t count) {
  std::vector<Affine> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = map_of(rank, i);
  return all;
}
inline std::vector<Affine> all_composed(int nranks, size_t begin, size_t count) {
  std::vector<Affine> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = composed(nranks, begin + i);
  return all;
}

}  // namespace ccom
