// SPDX-License-Identifier: Apache-2.0
//
// AllToAll by pairs: p - 1 messages of n/p bytes each, which is optimal in bytes; every message goes straight to where
// it belongs.
//
// All are under way at once; partners are visited in rotated order so that not everybody starts with the same one. In
// place, the outgoing blocks wait in scratch. The routed variant serves fabrics whose ranks do not all share links.
// Source: Thakur et al. 2005 (pairwise exchange).
#include "algorithms/builder.h"
#include "algorithms/collectives.h"
#include "base/assert.h"

namespace ccom {
namespace {

// One end of a message: only one of the buffers takes part.
Plan message_plan(Rank rank, int nranks, const char* algorithm) {
  return empty_plan({Collective::SendReceive, rank, nranks, -1, false}, algorithm);
}

}  // namespace

Plan pairwise_alltoall_plan(const Call& call) {
  CCOM_ASSERT(call.collective == Collective::AllToAll);
  const auto n = static_cast<uint32_t>(call.nranks);
  const auto self = static_cast<uint32_t>(call.rank);
  Builder builder(empty_plan(call, "pairwise"));
  Location outgoing{Buffer::Input, 0};
  if (call.in_place && n > 1) {
    outgoing = {Buffer::Scratch, builder.new_scratch(n)};
    builder.copy({Buffer::Input, 0}, outgoing, 0, n);
  }
  for (uint32_t k = 1; k < n; ++k) {
    const uint32_t to = (self + k) % n;
    const uint32_t from = (self + n - k) % n;
    builder.send_from(static_cast<Rank>(to), {outgoing.buffer, outgoing.index + to}, to, 1);
    builder.receive_into(static_cast<Rank>(from), {Buffer::Output, from}, from, 1);
  }
  builder.copy({outgoing.buffer, outgoing.index + self}, {Buffer::Output, self}, self, 1);
  return std::move(builder).finish();
}

// The allgather with units of n blocks each: its input is our input, its output and scratch lie in ours. A step that
// moves a unit in several blocks (the quarters of a torus) moves all n with the first one.
Plan routed_alltoall_plan(const Call& call, const Plan& gather) {
  CCOM_ASSERT(call.collective == Collective::AllToAll && gather.collective == Collective::AllGather);
  CCOM_ASSERT(gather.rank == call.rank && gather.nranks == call.nranks && !gather.in_place);
  const auto n = static_cast<uint32_t>(call.nranks);
  const auto self = static_cast<uint32_t>(call.rank);
  const uint32_t unit = gather.blocks_per_unit;
  Builder builder(empty_plan(call, "routed"));
  const uint32_t gathered = builder.new_scratch(n * n);
  const uint32_t passing = builder.new_scratch(gather.scratch_slots / unit * n);
  const auto place = [&](Buffer buffer, uint32_t index) -> Location {
    if (buffer == Buffer::Input) return {Buffer::Input, index / unit * n};
    return {Buffer::Scratch, (buffer == Buffer::Output ? gathered : passing) + index / unit * n};
  };
  for (Step step : gather.steps) {
    if (step.block % unit != 0) continue;
    const Location source = place(step.source_buffer, step.source);
    const Location target = place(step.target_buffer, step.target);
    step.source_buffer = source.buffer;
    step.source = source.index;
    step.target_buffer = target.buffer;
    step.target = target.index;
    step.block = step.block / unit * n;
    step.count = (step.count + unit - 1) / unit * n;
    step.channel = 0;
    builder.add(step);
  }
  for (uint32_t from = 0; from < n; ++from) {
    builder.copy({Buffer::Scratch, gathered + from * n + self}, {Buffer::Output, from}, from, 1);
  }
  return std::move(builder).finish();
}

Plan send_plan(Rank rank, int nranks, Rank peer) {
  Builder builder(message_plan(rank, nranks, "send"));
  builder.send_from(peer, {Buffer::Input, 0}, 0, 1);
  return std::move(builder).finish();
}

Plan receive_plan(Rank rank, int nranks, Rank peer) {
  Builder builder(message_plan(rank, nranks, "receive"));
  builder.receive_into(peer, {Buffer::Output, 0}, 0, 1);
  return std::move(builder).finish();
}

}  // namespace ccom
