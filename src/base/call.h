// SPDX-License-Identifier: Apache-2.0
//
// The descriptor of a collective call: what must be equal on all ranks, is compared between them, and stands in errors.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/types.h"

namespace ccom {

struct CallDescriptor {
  uint64_t number = 0;  // of this call on its communicator, from 1; of sends and receives: on their pair and direction
  uint64_t count = 0;   // as in the C API
  uint64_t kind = 0;    // see kind_of()
  friend auto operator<=>(const CallDescriptor&, const CallDescriptor&) = default;
};

// premultiplied: the operator is a PreMulSum, whose multiplier itself may differ between ranks. root: -1 for none.
uint64_t kind_of(Collective collective, DataType type, ReduceOp op, bool premultiplied, Rank root);
// What kind_of() was given. Of a kind from another process the parts may be no values of their types.
struct CallKind {
  Collective collective = Collective::AllReduce;
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  bool premultiplied = false;
  Rank root = -1;
  friend bool operator==(const CallKind&, const CallKind&) = default;
};
CallKind parts_of(uint64_t kind);
// "allreduce float32 sum"
std::string kind_text(uint64_t kind);

// "allreduce float32 sum count 1000 (call 42)"
std::string text_of(const CallDescriptor& call);
// "call 42 (allreduce)"
std::string short_text_of(const CallDescriptor& call);

}  // namespace ccom
