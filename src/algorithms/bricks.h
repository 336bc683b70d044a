// SPDX-License-Identifier: Apache-2.0
//
// Reduce-scatter, allgather and allreduce over one group of ranks: what every larger algorithm is composed of.
//
// Each appends steps for one member to a Builder. reduce_scatter: `range` holds a contribution on every member;
// afterwards member i owns the sum of part(i, owners). allgather is the reverse. `completes`: this is the last
// combination.
#pragma once

#include "algorithms/builder.h"
#include "algorithms/shape.h"

namespace ccom {

// ring.cc. `direction` +1 or -1 along the list.
Range ring_reduce_scatter(Builder& builder, const Group& group, Range range, bool completes, int direction = 1,
                          uint8_t channel = 0);
void ring_allgather(Builder& builder, const Group& group, Range range, int direction = 1, uint8_t channel = 0);

// direct.cc. Members beyond the first `owners` own nothing: an empty range.
Range direct_reduce_scatter(Builder& builder, const Group& group, uint32_t owners, Range range, bool completes);
void direct_allgather(Builder& builder, const Group& group, uint32_t owners, Range range);
void one_shot_allreduce(Builder& builder, const Group& group, Range range, bool completes);

// circulant.cc
Range circulant_reduce_scatter(Builder& builder, const Group& group, Range range, bool completes);
void circulant_allgather(Builder& builder, const Group& group, Range range);

// recursive_doubling.cc
void recursive_doubling_allreduce(Builder& builder, const Group& group, Range range, bool completes);

// torus.cc. Four quarters, each with a first dimension and a direction of its own; a member ends with one range per
// quarter.
std::vector<Range> torus_reduce_scatter(Builder& builder, const Group& group, int rows, int columns, Range range,
                                        bool completes);
void torus_allgather(Builder& builder, const Group& group, int rows, int columns, Range range);
// The ranges, without steps, that member `me` owns after torus_reduce_scatter.
std::vector<Range> torus_owned(uint32_t me, int rows, int columns, Range range);

}  // namespace ccom
