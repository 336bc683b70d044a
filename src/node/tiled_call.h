// SPDX-License-Identifier: Apache-2.0
//
// A call that does not fit into flag lines: finds out who can be reached, then runs the plan for that, tile by tile.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "node/bound_call.h"
#include "node/call_choices.h"
#include "node/flag_barrier.h"
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
    CallChoices& choices;
    std::vector<const std::byte*>& sources;  // of a step: room for as many as there are ranks
    std::vector<std::byte*>& targets;        // and for one more
    std::vector<std::byte>& read;            // what was read through the kernel, a stride for each source of a step
  };
  TiledCall(const NodeCall& call, BoundCall& bound, const Room& room)
      : call_(call), room_(room), bound_(bound), buffers_(bound.buffers(call)) {}

  Status run();

  // The barriers of the call, so far as known, if others may be at this rank's buffers between them.
  struct Exposure {
    uint32_t first_barrier = 0, last_barrier = 0;
    Bytes output{};  // that others may write to; empty: they only read
  };
  const std::optional<Exposure>& exposure() const { return exposure_; }

 private:
  Result<BoundNodePlan*> open();
  void hear(const CallChoices::Said& own);
  static std::pair<size_t, size_t> phases_in(const BoundNodePlan& plan, size_t slot);
  Status run_slot(BoundNodePlan& plan, size_t slot);
  Status meet(const BoundNodePlan& plan, size_t slot);
  Status await(const NodePhase& phase);
  Status run_phase(BoundNodePlan& plan, size_t phase, size_t tile);
  Status run_step(const BoundNodePlan& plan, const BoundNodeStep& step, size_t tile);
  Status take_sources(const BoundNodePlan& plan, const BoundNodeStep& step, size_t tile, size_t offset,
                      size_t size_bytes);
  void claim_sources(const BoundNodeStep& step, size_t size_bytes);
  std::byte* address(const BoundNodePlan& plan, const BoundNodeOperand& at, size_t tile) const;

  const NodeCall& call_;
  const Room& room_;
  BoundCall& bound_;
  PeerBuffers& buffers_;
  std::optional<Exposure> exposure_;
};

}  // namespace ccom
