// SPDX-License-Identifier: Apache-2.0
//
// Calls through shared memory, run as node_tuning's thresholds say: a NodeChoice for every collective, size and type.
#pragma once

#include <memory>
#include <vector>

#include "algorithms/node.h"
#include "node/shm_collectives.h"

namespace ccom {

struct TunedCall {
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

class TunedNode {
 public:
  TunedNode(NodeConfig config, NodeTuning tuning, Monitor& monitor, FlagBarrier::Describe describe,
            ShmCollectives::Fail fail);
  Status open() { return node_.open(); }
  Status run(const TunedCall& call, const CallWords& words, std::chrono::milliseconds timeout);
  void wake() { node_.wake(); }
  const ReachMap& reach_map() const { return node_.reach_map(); }
  uint64_t memory_bytes() const { return node_.memory_bytes(); }

 private:
  NodeChoice choice(const TunedCall& call) const;
  PreparedTask& prepared(const TunedCall& call);
  NodeViews views(const TunedCall& call) const;

  const NodeTuning tuning_;
  const int ranks_;
  const Rank local_rank_;
  ShmCollectives node_;
  std::vector<std::vector<std::unique_ptr<PreparedTask>>> small_;  // by collective, then root + 1
  std::vector<std::unique_ptr<PreparedTask>> others_;              // the latest first
};

}  // namespace ccom
