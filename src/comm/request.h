// SPDX-License-Identifier: Apache-2.0
//
// One call on a communicator, and its descriptor: what travels in front of every message so that different calls on
// different ranks are noticed.
#pragma once

#include "base/call.h"
#include "base/collective.h"
#include "comm/shares.h"
#include "kernels/user_operator.h"
#include "observe/call_site.h"
#include "transports/transport.h"

namespace ccom {

// Arguments as checked by the C border. A value; buffers are borrowed.
struct Request {
  Collective collective = Collective::AllReduce;
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  bool sends = false;     // SendReceive: this end
  bool is_group = false;  // several calls of a group as one
  CallSite site = 0;      // who made it
  Rank root = -1;         // rooted collectives
  Rank peer = -1;         // SendReceive
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  size_t count = 0;                       // as in the C API; 0 of v-forms
  const Shares* shares = nullptr;         // v-forms; outlives the call
  const std::byte* multiplier = nullptr;  // PreMulSum: one element that every input is multiplied by first
  std::byte* residual = nullptr;          // AllReduce: where to write what the encodings of this rank lose, float32
  int64_t timeout_ms = 0;                 // from when it begins to run
  UserOperator* user = nullptr;           // User and UserOrdered: outlives the call
};

// number: of the call on this communicator, as numbered() makes it (SendReceive: on this pair and direction, alone).
Envelope describe(const Request& request, uint64_t communicator, uint64_t number, uint32_t tile);
// Of stochastic rounding in one call: equal on all ranks, unrelated between calls.
uint64_t rounding_seed(int64_t communicator_seed, uint64_t sequence);
// What an envelope says of its call.
inline CallDescriptor call_of(const Envelope& envelope) {
  return {number_in(envelope.words[1]), envelope.words[2], envelope.words[3]};
}

// Whether two buffers have a byte in common.
inline bool overlap(ConstBytes a, ConstBytes b) {
  return !a.empty() && !b.empty() && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace ccom
