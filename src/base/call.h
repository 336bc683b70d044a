// SPDX-License-Identifier: Apache-2.0
//
// The descriptor of a collective call: what must be equal on all ranks, is compared between them, and stands in errors.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/collective.h"
#include "base/types.h"

namespace ccom {

struct CallDescriptor {
  uint64_t number = 0;  // of this call on its communicator, from 1; of sends and receives: on their pair and direction
  uint64_t count = 0;   // as in the C API
  uint64_t kind = 0;    // see kind_of()
  // Digest of what calls before this one left on this rank and must be equal on all ranks; 0: nobody looks
  // (CCOM_WITNESS, ccomCommWitness).
  uint64_t results = 0;
  friend auto operator<=>(const CallDescriptor&, const CallDescriptor&) = default;
};

// A call's number and, above it, a digest of all calls before it in one word, which ranks compare: a call in which no
// rank had to hear from one that made another is noticed in the next one that they make together.
inline constexpr int kHistoryShift = 48;
constexpr uint64_t numbered(uint64_t number, uint64_t history) {
  return number | history >> kHistoryShift << kHistoryShift;
}
constexpr uint64_t number_in(uint64_t word) { return word & ((uint64_t{1} << kHistoryShift) - 1); }
constexpr bool has_history_of(uint64_t word, uint64_t other) { return (word ^ other) >> kHistoryShift == 0; }
// The history after that call.
constexpr uint64_t extend(uint64_t history, const CallDescriptor& call) {
  uint64_t all = history + call.count * 0x9e3779b97f4a7c15U + call.kind;  // then as splitmix64's finaliser
  all = (all ^ all >> 30) * 0xbf58476d1ce4e5b9U;
  all = (all ^ all >> 27) * 0x94d049bb133111ebU;
  return all ^ all >> 31;
}

// Whether they are the same call, whatever those before have left.
constexpr bool are_same(const CallDescriptor& a, const CallDescriptor& b) {
  return a.number == b.number && a.count == b.count && a.kind == b.kind;
}

// Of kind_of(): bits in the operator's byte and in the collective's.
inline constexpr uint64_t kPreMultiplied = 0x80, kIsGroup = 0x40, kIsV = 0x80;

// Bytes: collective, type, operator, two of the user's operator, three of the root.
// premultiplied: the operator is a PreMulSum, whose multiplier itself may differ between ranks. root: -1 for none;
// below 2^23. user_operator: the number of a user's operator, 0 for others. is_v: the v-form, whose counts are compared
// elsewhere and are no part of descriptors (comm/shares.h). is_group: several calls of a group as one.
constexpr uint64_t kind_of(Collective collective, DataType type, ReduceOp op, bool premultiplied, Rank root,
                           uint16_t user_operator = 0, bool is_v = false, bool is_group = false) {
  const uint64_t operation = reduces(collective) ? static_cast<uint64_t>(op) | (premultiplied ? kPreMultiplied : 0) : 0;
  return static_cast<uint64_t>(collective) | (is_v ? kIsV : 0) | static_cast<uint64_t>(type) << 8 |
         (operation | (is_group ? kIsGroup : 0)) << 16 | static_cast<uint64_t>(user_operator) << 24 |
         static_cast<uint64_t>(static_cast<int64_t>(root)) << 40;
}
// What kind_of() was given. Of a kind from another process the parts may be no values of their types.
struct CallKind {
  Collective collective = Collective::AllReduce;
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  bool premultiplied = false;
  Rank root = -1;
  uint16_t user_operator = 0;
  bool is_v = false;
  bool is_group = false;
  friend bool operator==(const CallKind&, const CallKind&) = default;
};
CallKind parts_of(uint64_t kind);
// Whether kind_of() could have given it: collective, type and operator are values of their types.
bool is_kind(uint64_t kind);
// "allgather", "allgatherv"
std::string call_name(Collective collective, bool is_v);
// "allreduce float32 sum"
std::string kind_text(uint64_t kind);

// "allreduce float32 sum count 1000 (call 42)"
std::string text_of(const CallDescriptor& call);
// "call 42 (allreduce)"
std::string short_text_of(const CallDescriptor& call);

}  // namespace ccom
