// SPDX-License-Identifier: Apache-2.0
//
// Blocks of kBlockValues numbers of 8 bits with one scale, the element types Float8Block and Int8Block, and conversions
// between types.
//
// A block is its scale, a float, and then its codes; a number is code * scale. Of m, the largest magnitude of a block:
//
//   Float8Block   the scale is a power of two, so that m / scale is in [128, 256); codes are E4M3 (formats.h), rounded
//                 to nearest even. |error| <= max(|x| / 16, m / 2^17, 2^-136).
//   Int8Block     the scale is the float below m / 127; codes are -127 to 127, rounded to nearest even.
//                 |error| <= max(m / 253, 2^-127).
//
// No scale is below the smallest normal number, which bounds the errors of tiny blocks. A block that holds an infinity
// or a NaN, as Float8Block also a number of 31/32 2^128 or more, has the scale NaN: all its numbers are NaN. Zeros stay
// zeros; Int8Block knows no negative one. What a number is encoded as depends on its block alone, so blocks may be
// encoded anywhere and decode to the same bits everywhere. Source: the shared scales of Open Compute Project,
// Microscaling Formats (MX) 1.0, with 64 numbers instead of 32.
//
// A sum of blocks decodes all of them, adds in float in input order, divides if it is an average, and encodes once.
#pragma once

#include <cstddef>
#include <span>

#include "base/types.h"
#include "kernels/kernels.h"

namespace ccom {

// The last block of a vector may have fewer numbers; its other codes stand for zeros.
struct ScaledBlock {
  float scale;
  unsigned char codes[kBlockValues];
};
static_assert(sizeof(ScaledBlock) == size_of(DataType::Float8Block));

// Whether convert() can do it: Float32 to and from the narrow floats and the blocks, and blocks to Bfloat16.
bool can_convert(DataType from, DataType to);

// `values` numbers from one type to another, rounded to nearest even where that is necessary. Any alignment; no
// overlap. Numbers beyond the end of the last block are written as zeros, and not looked at.
void convert(DataType from, DataType to, const std::byte* input, std::byte* output, size_t values);

// Float32 to a narrow float with stochastic rounding: an element has the random bits that it would have in a Reducer of
// that type (Rounding::Stochastic). first_element: the index of value 0 in the whole vector.
struct RandomPlace {
  uint64_t seed = 0, first_element = 0;
};
void convert_at_random(DataType to, const std::byte* input, std::byte* output, size_t values, RandomPlace place);

// What blocks of `type` have lost of the float32 `values` that they were made of: loss[i] = values[i] - decoded[i],
// rounded to float32; 0 where that is not finite. Any alignment; no overlap.
void write_loss(DataType type, const std::byte* values, const std::byte* blocks, std::byte* loss, size_t count);

// reduce() of blocks of `count` numbers that adds to `loss` what encoding the sum loses, as write_loss; of an average
// that times the divisor. The output may be one of the inputs.
void reduce_with_loss(const Reduction& reduction, std::span<const std::byte* const> inputs, std::byte* output,
                      std::byte* loss, size_t count);

}  // namespace ccom
