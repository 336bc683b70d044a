// SPDX-License-Identifier: Apache-2.0
//
// The collectives as data: buffer sizes, their contents before and after, and the call itself.
#pragma once

#include <ccom/ccom.h>

#include <cstddef>
#include <string>
#include <vector>

#include "bench/expected.h"
#include "bench/names.h"
#include "bench/parts.h"

namespace ccom::bench {

struct Case {
  Collective collective = Collective::AllReduce;
  ccomDataType_t type = ccomFloat32;
  Reduction reduction = Reduction::Move;
  int root = 0;
  bool in_place = false;
  int ranks = 1;
  size_t count = 0;        // As in the call; of v-forms the mean of the parts.
  Skew skew = Skew::None;  // Of v-forms.

  Parts parts() const { return {skew, ranks, count}; }
  Pattern pattern() const { return {.type = type, .reduction = reduction, .ranks = ranks}; }
  bool operator==(const Case&) const = default;
};

// NCCL's meaning of size: the bytes of the larger of the two buffers. A size is rounded down to whole elements (times
// ranks, where the larger buffer has a part for each), but not below one; 0 stays 0.
size_t count_for(Collective collective, ccomDataType_t type, int ranks, size_t size_bytes);
size_t size_bytes_of(const Case& what);

// Positions of a rank's buffers, in elements from the start of an area; in place both are in the same area.
struct Layout {
  bool has_send = true;  // false: NULL is passed; the buffer is not used on this rank.
  bool has_recv = true;
  size_t send_offset = 0;
  size_t recv_offset = 0;
  size_t send_count = 0;
  size_t recv_count = 0;
};
Layout layout_of(const Case& what, int rank);
// The longest buffers of any rank, in elements.
struct Extent {
  size_t send_count = 0;
  size_t recv_count = 0;
};
Extent extent_of(const Case& what);

// A part of the receive buffer, and the rank whose input it must contain.
struct Arrival {
  size_t offset = 0;  // In elements from the beginning of the receive buffer.
  Stretch stretch;
};
std::vector<Arrival> arrivals(const Case& what, int rank, uint64_t iteration);

struct Range {
  std::vector<size_t> sizes;
  std::vector<ccomDataType_t> types;
  std::vector<Reduction> reductions;
  std::vector<int> roots;
  std::vector<bool> in_place;
  Skew skew = Skew::Linear;  // Of v-forms.
};
// The rows of a table, in order: type, operator, root, size, place. Invalid pairs, placements that do not exist and
// sizes that yield the previous row's count are skipped.
std::vector<Case> cases_of(Collective collective, int ranks, const Range& range);

// "allreduce float32 sum, 4096 bytes, in place".
std::string text_of(const Case& what);

// The lists that a rank passes to a v-form; those of other calls are empty. Parts are one behind the other.
struct Counts {
  std::vector<size_t> sent;
  std::vector<size_t> received;
};
Counts counts_of(const Case& what, int rank);

// `op` is used by reductions only.
ccomResult_t call(const Case& what, const Counts& counts, int rank, const void* send, void* recv, ccomRedOp_t op,
                  ccomComm_t comm, ccomStream_t stream);

}  // namespace ccom::bench
