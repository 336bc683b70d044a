// SPDX-License-Identifier: Apache-2.0
//
// Collectives among the ranks of one node, through memory that they share: the real world behind node plans.
//
// Three ways, by size and by what can be reached:
// - Small calls: everybody shows its input in its flag line or its mail and reads everybody else's. One meet. One
//   function (run_small) instead of an interpreter; it does what the node plans one_shot and direct say, with lines and
//   mails as the stage.
// - Larger ones begin with a meet in which ranks say where their buffers are. Buffers within reach are used where they
//   lie.
// - What cannot be reached goes through staging memory, in tiles that stay in the cache.
#pragma once

#include <memory>
#include <vector>

#include "algorithms/node.h"
#include "kernels/kernels.h"
#include "memory/shared_segment.h"
#include "node/flag_barrier.h"
#include "node/geometry.h"
#include "node/reach.h"

namespace ccom {

struct NodeConfig {
  FlagBarrier::Config barrier;
  NodeLayout layout;
  SharedSegment* segment = nullptr;  // outlives the group, as the monitor does
  size_t region_offset = 0;
  std::vector<NodeMate> mates;
  const Arena* arena = nullptr;  // this process's
  ReachMap::Means means;
  NodeTuning tuning;  // small_bytes at most kMailBytes
};

// A call as its plan sees it. Buffers are borrowed.
struct NodeCall {
  Collective collective = Collective::AllReduce;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  size_t count = 0;        // elements of a unit
  size_t unit_stride = 0;  // elements from one unit to the next, where a buffer holds several; 0: count
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  Rank root = -1;
  bool in_place = false;
  Rounding rounding = Rounding::NearestEven;
  uint64_t seed = 0;
};

// Belongs to one thread at a time, but for wake(). An error of run() is final.
class ShmCollectives {
 public:
  using Fail = std::function<Status(const Status& cause)>;
  ShmCollectives(NodeConfig config, Monitor& monitor, FlagBarrier::Describe describe, Fail fail);
  // Takes memory for this rank's lines; by every rank before any of them calls run().
  Status open();

  // Blocking. Every rank of the node makes the call, with equal words.
  //
  // An error is made the communicator's (fail: reports it and returns the one in force) before the call returns, and
  // nobody touches this rank's buffers after that. A peer that is stopped for more than a second in the middle of a
  // copy is the exception; it is logged.
  Status run(const NodeCall& call, const CallWords& words, std::chrono::milliseconds timeout);
  void wake() { barrier_.wake(); }

  const ReachMap& reach_map() const { return reach_map_; }
  // Taken by this rank so far.
  uint64_t memory_bytes() const { return memory_bytes_; }
  // The plan that a call of this size runs; for explanations and tests.
  NodePlan plan_for(const NodeCall& call, std::span<const Reach> reach) const;

 private:
  struct CachedPlan {
    Collective collective;
    Rank root;
    bool in_place;
    NodeScheme scheme;
    bool whole;
    std::vector<Reach> reach;
    std::unique_ptr<const NodePlan> plan;
  };
  struct ChosenReducer {
    bool valid = false;
    Reduction reduction;
    Reducer reducer;
  };

  size_t shown_bytes(const NodeCall& call) const;
  size_t shown_extent(const NodeCall& call) const;
  Status run_small(const NodeCall& call, size_t shown);
  void show(const NodeCall& call, size_t shown);
  void combine_shown(const NodeCall& call, size_t shown);
  const std::byte* shown_by(int place, size_t shown) const;

  Status run_large(const NodeCall& call);
  Status give_up(const Status& cause);
  Announcement announce(const NodeCall& call) const;
  Status collect_reach(const NodeCall& call, const Announcement& mine);
  size_t total_bytes(const NodeCall& call) const;
  NodeShape shape_for(const NodeCall& call, std::span<const Reach> reach) const;
  bool is_worth_reading(const NodeCall& call) const;
  const NodePlan& cached_plan(const NodeCall& call, const std::vector<Reach>& reach);
  NodeGeometry geometry_of(const NodeCall& call, const NodePlan& plan) const;
  Status run_tiles(const NodePlan& plan);
  Status run_phase(const NodePhase& phase, size_t tile);
  Status run_step(const NodeStep& step, size_t tile, uint32_t source_piece, uint32_t target_piece, uint32_t count);
  Status await(const NodePlan& plan, size_t slot, size_t tiles);
  Status take_sources(const NodeStep& step, size_t tile, uint32_t piece, size_t offset, size_t size_bytes);
  bool is_remote(const Operand& operand) const;
  std::byte* address(const Operand& operand, size_t tile, uint32_t piece) const;

  Status reserve_staging();
  const Reducer& reducer(const NodeCall& call, bool completes);
  int size() const { return barrier_.size(); }

  const NodeConfig config_;
  Monitor& monitor_;
  std::byte* const region_;
  FlagBarrier barrier_;
  const ReachMap reach_map_;
  const Fail fail_;
  const std::vector<Reach> nobody_;
  ChosenReducer partial_, complete_;
  std::vector<CachedPlan> plans_;  // the latest first
  bool has_staging_ = false;
  size_t tiles_before_ = 0;  // staged by all calls so far
  uint64_t memory_bytes_ = 0;

  // Of the present call.
  NodeCall call_;
  NodeGeometry geometry_;
  bool streams_ = false;
  bool is_shown_ = false;                    // others may be at this rank's buffers
  uint32_t first_meet_ = 0, last_meet_ = 0;  // of the call, if they may
  std::vector<Reach> reach_;
  std::vector<std::byte*> inputs_, outputs_;  // by place: as this rank reaches them
  std::vector<bool> is_remote_, is_pulled_;   // by place: input, output is to be read through the kernel
  std::vector<std::byte> read_;               // what was read, a stride for each source of a step
  std::vector<const std::byte*> sources_;     // of a step
  std::vector<std::byte*> targets_;
};

}  // namespace ccom
