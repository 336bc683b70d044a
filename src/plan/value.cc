// SPDX-License-Identifier: Apache-2.0
#include "plan/value.h"

#include <algorithm>

#include "base/assert.h"

namespace ccom {

Value leaf(uint64_t word, uint64_t origin, Rank rank) {
  Value value{.sum = word, .expression = mix(word ^ 0x5bd1e995), .origin = origin};
  value.ranks = {rank, rank};
  return value;
}

Value combine(const Value& a, const Value& b) {
  Value result;
  result.sum = add_mod(a.sum, b.sum);
  result.expression = mix(std::min(a.expression, b.expression)) ^ (mix(std::max(a.expression, b.expression)) << 1 | 1);
  result.origin = a.origin;
  result.roundings = std::max(a.roundings, b.roundings);
  result.type = a.type;
  result.encodings = std::max(a.encodings, b.encodings);
  result.completed = a.completed || b.completed;  // an error if it happens; checked where it is combined
  if (a.ranks.is_in_order() && b.ranks.is_in_order() && a.ranks.last + 1 == b.ranks.first)
    result.ranks = {a.ranks.first, b.ranks.last};
  return result;
}

void round_once(Value& sum, size_t inputs) {
  if (sum.type != UnitType::Float32) ++sum.roundings;
  if (is_block(sum.type)) ++sum.encodings;
  if (inputs > 2) sum.expression ^= mix(inputs);
}

void convert_to(Value& value, UnitType type) {
  value.type = type;
  value.expression = mix(value.expression ^ mix(static_cast<uint64_t>(type) + 1));
  if (type != UnitType::Float32) ++value.roundings;
  if (is_block(type)) ++value.encodings;
}

Value whole_of(std::span<const Value> pieces, bool& is_whole) {
  CCOM_ASSERT(!pieces.empty());
  Value whole = pieces[0];
  uint64_t hash = 0;
  bool is_uniform = true;
  for (const Value& piece : pieces) {
    is_whole &= piece.sum == whole.sum && piece.completed == whole.completed;
    is_uniform &= piece.expression == pieces[0].expression;
    if (piece.ranks != pieces[0].ranks) whole.ranks = {};
    hash = mix(hash * 3 + mix(piece.expression));
    whole.roundings = std::max(whole.roundings, piece.roundings);
    whole.encodings = std::max(whole.encodings, piece.encodings);
  }
  if (!is_uniform) whole.expression = hash;
  return whole;
}

}  // namespace ccom
