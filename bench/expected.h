// SPDX-License-Identifier: Apache-2.0
//
// Inputs and expected results: a pure function of (iteration, rank, index), so no communication is needed.
//
// Inputs are chosen so that the result is exact whatever the order of the operations and wherever it is rounded:
// integers wrap; floats are integers small enough that every partial sum is representable (with more ranks than that
// allows, some ranks contribute zero), or factors 2, 1, 1/2 and one 3/2. Maps have odd factors, so that each matters.
// Only an average of floats is compared within two units in the last place. Data that is only moved is random bytes,
// NaNs included.
#pragma once

#include <ccom/ccom.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/names.h"

namespace ccom::bench {

inline constexpr int kEveryRank = -1;

struct Pattern {
  ccomDataType_t type = ccomFloat32;
  Reduction reduction = Reduction::Move;
  int ranks = 1;
  uint64_t seed = 0;
};

// `count` elements that rank `source` contributes from its element `first` on; kEveryRank: the reduction over all
// ranks.
struct Stretch {
  uint64_t iteration = 0;
  int source = 0;
  size_t first = 0;
  size_t count = 0;
};

// Result of a comparison. `index` counts from the start of the stretch; texts are set when wrong > 0.
struct Verdict {
  uint64_t wrong = 0;
  size_t index = 0;
  std::string got;
  std::string expected;
};

// Writes an input: stretch.source is a rank. Any alignment of `data`.
void fill(const Pattern& pattern, const Stretch& stretch, void* data);
Verdict check(const Pattern& pattern, const Stretch& stretch, const void* data);
// PreMulSum's scalar for `rank`, one element of the type, written to `scalar`.
void write_scalar(const Pattern& pattern, int rank, void* scalar);
// Of bytes, for comparing results between ranks.
uint64_t hash_bytes(const void* data, size_t size_bytes);

}  // namespace ccom::bench
