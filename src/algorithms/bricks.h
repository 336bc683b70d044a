// SPDX-License-Identifier: Apache-2.0
//
// Reduce-scatter, allgather and allreduce over one group of ranks: what every larger algorithm is composed of.
//
// Each appends steps for one member to a Builder. reduce_scatter: `range` holds a contribution on every member;
// afterwards member i owns the sum of part(i, owners). allgather is the reverse. `completes`: this is the last
// combination. Bricks with streams use channel, channel + 1, ..., the others `channel`.
#pragma once

#include "algorithms/builder.h"
#include "algorithms/shape.h"

namespace ccom {

// ring.cc. `direction` +1 or -1 along the list, or 0: both ways at once, with a range whose parts have a half each
// where the group's size is even and above two.
void ring_reduce_scatter(Builder& builder, const Group& group, Range range, bool completes, int direction = 1,
                         uint8_t channel = 0);
void ring_allgather(Builder& builder, const Group& group, Range range, int direction = 1, uint8_t channel = 0);

// direct.cc. Members beyond the first `owners` own nothing.
void direct_reduce_scatter(Builder& builder, const Group& group, uint32_t owners, Range range, bool completes,
                           uint8_t channel = 0);
void direct_allgather(Builder& builder, const Group& group, uint32_t owners, Range range, uint8_t channel = 0);
void one_shot_allreduce(Builder& builder, const Group& group, Range range, bool completes, uint8_t channel = 0);

// circulant.cc
void circulant_reduce_scatter(Builder& builder, const Group& group, Range range, bool completes, uint8_t channel = 0);
void circulant_allgather(Builder& builder, const Group& group, Range range, uint8_t channel = 0);

// bine.cc, of a power of two of members. A member owns bine_owned() of the range.
void bine_reduce_scatter(Builder& builder, const Group& group, Range range, bool completes, uint8_t channel = 0);
void bine_allgather(Builder& builder, const Group& group, Range range, uint8_t channel = 0);
Range bine_owned(uint32_t me, uint32_t members, Range range);
uint32_t bine_partner(uint32_t member, uint32_t members, int round);

// recursive_doubling.cc. Partners differ in one bit, or are Bine's, far ones first.
enum class Partners : uint8_t { OfBits, OfBine };
void recursive_doubling_allreduce(Builder& builder, const Group& group, Range range, bool completes,
                                  uint8_t channel = 0, Partners partners = Partners::OfBits);
// With level.dims: along one dimension after another, in each stream's order.
void recursive_doubling_by_dimension(Builder& builder, const Group& group, const Level& level, Range range,
                                     bool completes, uint8_t channel);

// Patterns with streams: afterwards a member owns one range per stream, as ..._owned says.
// torus.cc: Torus and Rings
void torus_reduce_scatter(Builder& builder, const Group& group, const Level& level, Range range, bool completes,
                          uint8_t channel);
void torus_allgather(Builder& builder, const Group& group, const Level& level, Range range, uint8_t channel);
std::vector<Range> torus_owned(const Level& level, uint32_t me, Range range);
// swing.cc
void swing_reduce_scatter(Builder& builder, const Group& group, const Level& level, Range range, bool completes,
                          uint8_t channel);
void swing_allgather(Builder& builder, const Group& group, const Level& level, Range range, uint8_t channel);
std::vector<Range> swing_owned(const Level& level, uint32_t me, Range range);
// In a round on one ring of a power of two of members.
uint32_t swing_partner(uint32_t member, uint32_t members, int round);
void swing_allreduce(Builder& builder, const Group& group, const Level& level, Range range, bool completes,
                     uint8_t channel);

}  // namespace ccom
