// SPDX-License-Identifier: Apache-2.0
#include "node/peer_buffers.h"

#include <algorithm>
#include <cstring>

namespace ccom {
namespace {

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

PeerBuffers::PeerBuffers(const NodeCall& call)
    : said_(static_cast<size_t>(call.task->task().nranks)),
      reach_(said_.size()),
      inputs_(said_.size()),
      outputs_(said_.size()) {
  for (size_t i = 0; i < said_.size(); ++i) {
    inputs_[i].extent = NodeGeometry::extent(call, {Area::Input, static_cast<Rank>(i)});
    outputs_[i].extent = NodeGeometry::extent(call, {Area::Output, static_cast<Rank>(i)});
  }
}

PeerBuffers::Own PeerBuffers::announce(const NodeCall& call, const ReachMap& map, Rank local_rank) {
  const NodeChoice& choice = call.task->choice();
  const auto where = [&](const std::byte* buffer, Area area) -> Announcement::Where {
    const NodeGeometry::Extent& here = extent({area, local_rank});
    if (here.size_bytes() == 0) return {};
    return choice.reads ? map.describe_readable(buffer + here.begin, here.size_bytes())
                        : map.describe(buffer + here.begin, here.size_bytes());
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

void PeerBuffers::clear() {
  std::ranges::fill(said_, Opening());
  std::ranges::fill(reach_, Reach());
  is_anybody_reached_ = is_any_output_remote_ = false;
}

Result<bool> PeerBuffers::collect(const Opening& mine, const ReachMap& map, const FlagBarrier& barrier) {
  bool is_new = false;
  for (Rank rank = 0; rank < static_cast<Rank>(said_.size()); ++rank) {
    const auto i = static_cast<size_t>(rank);
    Opening said = mine;
    if (rank != barrier.local_rank()) std::memcpy(&said, barrier.payload_of(rank), sizeof said);
    if (said.is_like(said_[i])) continue;
    if (rank != barrier.local_rank()) CCOM_TRY(find(rank, said.announcement, map, barrier));
    reach_[i] = {said.announcement.input.is_reached(), said.announcement.output.is_mapped()};
    said_[i] = said;
    is_new = true;
  }
  if (is_new) [[unlikely]] {
    is_anybody_reached_ = std::ranges::any_of(reach_, [](const Reach& at) { return at.input || at.output; });
    is_any_output_remote_ = std::ranges::any_of(outputs_, &Buffer::is_remote);
  }
  return is_new;
}

Status PeerBuffers::find(Rank rank, const Announcement& said, const ReachMap& map, const FlagBarrier& barrier) {
  const auto found = [&](const Announcement::Where& where, Buffer& buffer) {
    std::byte* const at = where.is_reached() ? map.resolve(rank, where, buffer.extent.size_bytes()) : nullptr;
    buffer.begin = at != nullptr ? at - buffer.extent.begin : nullptr;
    buffer.is_remote = where.kind == Announcement::Readable;
    return at != nullptr || !where.is_reached();
  };
  const auto i = static_cast<size_t>(rank);
  if (found(said.input, inputs_[i]) && found(said.output, outputs_[i])) return {};
  return error(Code::InternalError, "rank %d says that its buffers lie outside of its arena", barrier.rank_of(rank))
      .with_peers({barrier.rank_of(rank)});
}

}  // namespace ccom
