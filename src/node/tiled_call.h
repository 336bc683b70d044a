// SPDX-License-Identifier: Apache-2.0
//
// A call that does not fit into flag lines: finds out who can be reached, then runs the plan for that, tile by tile.
#pragma once

#include <optional>
#include <vector>

#include "node/call_choices.h"
#include "node/flag_barrier.h"
#include "node/geometry.h"
#include "node/peer_buffers.h"
#include "node/reducers.h"
#include "node/staging.h"

namespace ccom {

class TiledCall {
 public:
  // What lives on from call to call; all of it outlives the call.
  struct Room {
    FlagBarrier& barrier;
    Monitor& monitor;
    const ReachMap& reach_map;
    const PreparedTask::Prove& prove;
    Staging& staging;
    Reducers& reducers;
    PeerBuffers& buffers;
    CallChoices& choices;
    std::vector<const std::byte*>& sources;  // of a step
    std::vector<std::byte*>& targets;
    std::vector<std::byte>& read;  // what was read through the kernel, a stride for each source of a step
  };
  TiledCall(const NodeCall& call, const Room& room) : call_(call), room_(room) {}

  Status run();

  // The barriers of the call, so far as known, if others may be at this rank's buffers between them.
  struct Exposure {
    uint32_t first_barrier = 0, last_barrier = 0;
    Bytes output{};  // that others may write to; empty: they only read
  };
  const std::optional<Exposure>& exposure() const { return exposure_; }

 private:
  Status open();
  void hear(const CallChoices::Said& own);
  Status run_tiles(const NodePlan& plan);
  Status run_phase(const NodePhase& phase, size_t tile);
  Status run_step(const NodeStep& step, size_t tile, uint32_t source_piece, uint32_t target_piece, uint32_t count);
  Status take_sources(const NodeStep& step, size_t tile, uint32_t piece, size_t offset, size_t size_bytes);
  bool is_claimed(const Operand& source) const;
  void claim_sources(const NodeStep& step, size_t size_bytes);
  Status await(const NodePlan& plan, size_t slot, size_t tiles);
  bool is_streamed(const Operand& target) const;
  std::byte* address(const Operand& operand, size_t tile, uint32_t piece) const;

  const NodeCall& call_;
  const Room& room_;
  std::optional<NodeGeometry> geometry_;
  bool streams_ = false;
  std::optional<Exposure> exposure_;
};

}  // namespace ccom
