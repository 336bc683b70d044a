// SPDX-License-Identifier: Apache-2.0
#include "node/peer_buffers.h"

#include <algorithm>
#include <cstring>

#include "node/call_choices.h"
#include "node/geometry.h"

namespace ccom {
namespace {

static_assert(sizeof(Announcement) + sizeof(CallChoices::Said) <= kLinePayloadBytes, "they travel in a flag line");

// Whether ranks write their outputs while others may still read inputs.
bool overwrites_early(const NodeShape& shape) {
  return shape.scheme == NodeScheme::OneShot || shape.scheme == NodeScheme::Direct;
}

// An input that is overwritten while others read it is not shown where it lies.
bool may_show_input(const NodeCall& call, const Announcement::Where& output) {
  const PreparedTask& task = *call.task;
  if (!call.in_place || !task.overwrites_input()) return true;
  const NodeChoice& choice = task.choice();
  if (overwrites_early(choice.mapped)) return false;
  return output.is_mapped() || (!overwrites_early(choice.staged) && !overwrites_early(choice.readable));
}

}  // namespace

PeerBuffers::PeerBuffers(int ranks)
    : reach_(static_cast<size_t>(ranks)), inputs_(reach_.size()), outputs_(reach_.size()) {}

PeerBuffers::Own PeerBuffers::announce(const NodeCall& call, const ReachMap& map, Rank local_rank) {
  const NodeChoice& choice = call.task->choice();
  const auto where = [&](const std::byte* buffer, Area area) -> Announcement::Where {
    const NodeGeometry::Extent extent = NodeGeometry::extent(call, {area, local_rank});
    if (extent.size_bytes() == 0) return {};
    return choice.reads ? map.describe_readable(buffer + extent.begin, extent.size_bytes())
                        : map.describe(buffer + extent.begin, extent.size_bytes());
  };
  const Collective collective = call.task->task().collective;
  Announcement mine;
  if (collective == Collective::AllReduce || collective == Collective::Reduce)
    mine.output = where(call.output, Area::Output);
  mine.input = where(call.input, Area::Input);
  const uint32_t mapped = (mine.input.is_mapped() ? 1U : 0U) | (mine.output.is_mapped() ? 2U : 0U);
  if (!may_show_input(call, mine.output)) mine.input = {};
  // All ranks read all outputs, if they do so all inputs.
  if (choice.readable.scheme == NodeScheme::Pull && !mine.output.is_reached()) mine.input = {};
  if (choice.stages_mapped) mine = {};
  return {mine, mapped};
}

void PeerBuffers::clear(const NodeCall& call, Rank local_rank) {
  std::ranges::fill(reach_, Reach());
  const auto self = static_cast<size_t>(local_rank);
  inputs_[self] = {const_cast<std::byte*>(call.input), false};  // never written through
  outputs_[self] = {call.output, false};
}

Status PeerBuffers::collect(const NodeCall& call, const Announcement& mine, const ReachMap& map,
                            const FlagBarrier& barrier) {
  clear(call, barrier.local_rank());
  const auto find = [&](Rank rank, const Announcement::Where& where, Area area, Buffer& found) {
    found = {};
    if (!where.is_reached()) return true;
    const NodeGeometry::Extent extent = NodeGeometry::extent(call, {area, rank});
    std::byte* const at = map.resolve(rank, where, extent.size_bytes());
    if (at != nullptr) found = {at - extent.begin, where.kind == Announcement::Readable};
    return at != nullptr;
  };
  for (Rank rank = 0; rank < static_cast<Rank>(reach_.size()); ++rank) {
    const auto i = static_cast<size_t>(rank);
    Announcement said = mine;
    if (rank != barrier.local_rank()) {
      std::memcpy(&said, barrier.payload_of(rank), sizeof said);
      if (!find(rank, said.input, Area::Input, inputs_[i]) || !find(rank, said.output, Area::Output, outputs_[i])) {
        return error(Code::InternalError, "rank %d says that its buffers lie outside of its arena",
                     barrier.rank_of(rank))
            .with_peers({barrier.rank_of(rank)});
      }
    }
    reach_[i] = {said.input.is_reached(), said.output.is_mapped()};
  }
  return {};
}

bool PeerBuffers::is_anybody_reached() const {
  return std::ranges::any_of(reach_, [](const Reach& reach) { return reach.input || reach.output; });
}

bool PeerBuffers::is_any_output_remote() const { return std::ranges::any_of(outputs_, &Buffer::is_remote); }

}  // namespace ccom
